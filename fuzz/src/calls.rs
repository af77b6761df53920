//! Wrappers against the model of the contract: an input chooses a signature, its kernel and some calls. All executors
//! agree with the model on outcomes, messages and the kernel's arguments.
//!
//! The program puts all memory of the arguments at the ends of pages, so a wrapper that reads too far ends it.

use arbitrary::{Result as Read, Unstructured};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tvm_ffi_codegen::Signature;

use super::live::leaves_none;
use crate::property::agreement::{Behind, check};
use crate::property::calls::Plan;
use crate::property::signatures;
use crate::support::exec::{Prepared, Program};

/// The maximum number of calls of an input.
const CALLS: usize = 16;

/// Calls a signature as an input says.
///
/// # Panics
/// Executors disagree with each other or with the model, or objects are left.
pub fn run(input: &[u8]) {
    leaves_none(|| calls(input));
}

fn calls(input: &[u8]) {
    let mut input = Unstructured::new(input);
    let Ok((Some(signature), choice)) = signature(&mut input) else { return };
    let behind = Behind::choose(&signature, choice);
    let program = behind.kernel(&signature).and_then(|kernel| Program::new(signature.clone(), kernel));
    let program = program.unwrap_or_else(|problem| panic!("{signature}\n{problem}"));
    let mut prepared = Prepared::new(&program).unwrap_or_else(|problem| panic!("{signature}\n{problem}"));
    for _ in 0..CALLS {
        let Ok(plan) = plan(&mut input) else { break };
        check(&mut prepared, &signature, behind, &plan).unwrap_or_else(|problem| panic!("{problem}"));
    }
}

/// The signature and the kernel that an input chooses. Each number is a signature, or none if the generator gives up.
fn signature(input: &mut Unstructured<'_>) -> Read<(Option<Signature>, u8)> {
    let (kind, number) = (input.arbitrary::<u8>()?, input.arbitrary::<u32>()?);
    let mut seed = [0; 32];
    seed[..4].copy_from_slice(&number.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, random);
    let signature = match kind >> 3 {
        0..=27 => signatures::signature().new_tree(&mut runner).map(|tree| tree.current()),
        _ => signatures::large_signature().new_tree(&mut runner).map(|tree| tree.current()),
    };
    Ok((signature.ok(), kind % 8))
}

/// A call's plan, in the ranges of random plans.
fn plan(input: &mut Unstructured<'_>) -> Read<Plan> {
    if input.is_empty() {
        return Err(arbitrary::Error::NotEnoughData);
    }
    let sizes = input.arbitrary::<[u8; 5]>()?.map(|byte| i64::from(byte % 5));
    let [n, m, k, s, stride] = sizes;
    let (id, seed) = (input.arbitrary::<u8>()? % 3, input.arbitrary()?);
    let changes = (0..input.arbitrary::<u8>()? % 3).map(|_| input.arbitrary()).collect::<Read<Vec<u64>>>()?;
    // the last symbol only occurs in strides, so it may be negative
    Ok(Plan::of([n, m, k, s, stride - 2], id.into(), seed, changes))
}
