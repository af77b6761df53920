//! Tests of random values. `PROPTEST_CASES` sets how many, and `TVM_FFI_CODEGEN_SEED` repeats a run.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::dice::seed;

/// The number of cases from `PROPTEST_CASES`, or else the given number.
pub fn stated_or(cases: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|stated| stated.parse().ok()).unwrap_or(cases)
}

/// Runs a test on random values. A failure says how to repeat it.
pub fn run<S: Strategy>(cases: u32, strategy: &S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let seed = seed();
    let mut bytes = [0u8; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 40, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    println!("TVM_FFI_CODEGEN_SEED={seed}");
    if let Err(error) = TestRunner::new_with_rng(config, rng).run(strategy, test) {
        panic!("{error}\nTVM_FFI_CODEGEN_SEED={seed} repeats this");
    }
}

/// A random value, the same in each run.
pub fn sample<S: Strategy>(strategy: &S) -> S::Value {
    let runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &[0; 32]));
    strategy.new_tree(&mut { runner }).unwrap().current()
}
