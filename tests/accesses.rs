//! Wrappers read and write only what their checks allow: a proof for each fixture's signature, without running it. Then
//! each check of a fast path is removed in turn. The proof fails, or a call shows the difference.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;

use proptest::collection::vec;
use tvm_ffi_codegen::ir::{self, Block, FuncRef, Linkage, Module, Op, Terminator};
use tvm_ffi_codegen::lower::{Convention, RuntimeHelpers, lower};
use tvm_ffi_codegen::{Kernel, Signature};

use crate::fixtures::signatures;
use crate::property::calls;
use crate::support::accesses::{Proof, prove};
use crate::support::args::Form;
use crate::support::exec::{Program, interpreter, run};
use crate::support::model::{self, Prediction};
use crate::support::parallel;
use crate::support::random::{sample, stated_or};

#[test]
fn every_wrapper_reads_what_its_checks_allow() {
    let all = signatures();
    let proofs = parallel::map(&all, |(heading, signature, kernel)| {
        let module = lower(signature, kernel, RuntimeHelpers::Import).unwrap();
        prove(&module).unwrap_or_else(|violations| {
            let violations: Vec<String> = violations.iter().map(ToString::to_string).collect();
            panic!("{heading}\n{}\n{module}", violations.join("\n"))
        })
    });
    let sum = |count: fn(&Proof) -> usize| proofs.iter().map(count).sum::<usize>();
    let (proven, own, trusted) = (sum(|proof| proof.proven), sum(|proof| proof.own), sum(|proof| proof.trusted));
    println!("{} wrappers: {proven} reads of arguments proven, {own} own, {trusted} trusted", proofs.len());
    assert!(proven > 5000 && own > 5000, "{proven}, {own}");
}

/// A check of a fast path: a branch whose other target is the slow path.
#[derive(Clone, Copy)]
struct Check {
    func: FuncRef,
    block: Block,
    /// The number of the target that goes on.
    passes: usize,
}

/// The checks of all exported wrappers.
fn checks(module: &Module) -> Vec<Check> {
    let mut found = Vec::new();
    for (func, decl) in module.functions.iter().filter(|(_, decl)| decl.linkage == Linkage::Export) {
        let Some(body) = &decl.body else { continue };
        let calls_slow_path = |block: Block| {
            body.blocks[block].insts.iter().any(|&inst| match &body.insts[inst].op {
                Op::Call(callee, _) => {
                    let name = &module.functions[*callee].name;
                    name.ends_with("-slow-path") || name == tvm_ffi_codegen::lower::BIND_SYMBOL
                }
                _ => false,
            })
        };
        for (block, data) in body.blocks.iter() {
            let Some(Terminator::Branch { then, otherwise, .. }) = &data.terminator else { continue };
            match [then, otherwise].map(|to| calls_slow_path(to.block)) {
                [false, true] => found.push(Check { func, block, passes: 0 }),
                [true, false] => found.push(Check { func, block, passes: 1 }),
                _ => {}
            }
        }
    }
    found
}

/// The module without a check.
fn without(module: &Module, check: Check) -> Module {
    let mut module = module.clone();
    let body = module.functions[check.func].body.as_mut().unwrap();
    let terminator = body.blocks[check.block].terminator.as_mut().unwrap();
    let passes = terminator.targets().nth(check.passes).unwrap().clone();
    *terminator = Terminator::Jump(passes);
    module
}

/// How a removed check was noticed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Noticed {
    ByTheProof,
    ByACall,
    Not,
}

/// The number of calls that look for a difference. `PROPTEST_CASES` sets it, and a small number takes only some
/// signatures.
const CALLS: u32 = 2000;

#[test]
fn each_check_is_needed() {
    let calls = stated_or(CALLS);
    let step = if calls < CALLS { 12 } else { 1 };
    let mut seen = HashSet::new();
    let all: Vec<Signature> = signatures().into_iter().map(|(_, signature, _)| signature).collect();
    let all: Vec<Signature> = all.into_iter().filter(|signature| seen.insert(signature.to_string())).collect();
    let some: Vec<Signature> = all.into_iter().step_by(step).collect();
    let counts = Mutex::new(BTreeMap::<Noticed, usize>::new());
    let unnoticed = parallel::map(&some, |signature| removed(signature, CALLS, &counts));
    let unnoticed: Vec<String> = unnoticed.into_iter().flatten().collect();
    println!("{:?}", counts.into_inner().unwrap());
    assert!(unnoticed.is_empty(), "{} removed checks weren't noticed\n{}", unnoticed.len(), unnoticed.join("\n"));
}

/// Removes each check of a signature's fast path in turn; returns those that no call missed.
fn removed(signature: &Signature, calls: u32, counts: &Mutex<BTreeMap<Noticed, usize>>) -> Vec<String> {
    let Ok(program) = Program::new(signature.clone(), Kernel::check_only()) else { return Vec::new() };
    let plans = sample(&vec(calls::plan(), calls as usize));
    let predicted: Vec<_> = plans
        .iter()
        .filter_map(|plan| {
            let call = plan.call(signature);
            let refused = matches!(model::predict(signature, &call, Convention::Flat)?, Prediction::Refused(_));
            Some((call, refused))
        })
        .collect();
    let mut unnoticed = Vec::new();
    for check in checks(&program.module) {
        let mutant = without(&program.module, check);
        let noticed = match prove(&mutant) {
            // It may read anything, so it isn't run.
            Err(_) => Noticed::ByTheProof,
            Ok(_) => {
                let module = ir::verify(mutant).unwrap();
                let mutant = Program { signature: signature.clone(), kernel: Kernel::check_only(), module };
                let mut runnable = interpreter(&mutant).unwrap();
                let differs = |(call, refused): &(_, bool)| {
                    let forms = [Form::DlTensor, Form::Object];
                    forms.into_iter().any(|form| (run(&mut *runnable, call, form).code != Ok(0)) != *refused)
                };
                if predicted.iter().any(differs) { Noticed::ByACall } else { Noticed::Not }
            }
        };
        *counts.lock().unwrap().entry(noticed).or_default() += 1;
        if noticed == Noticed::Not {
            unnoticed.push(format!("{signature}: {}", check.block));
        }
    }
    unnoticed
}
