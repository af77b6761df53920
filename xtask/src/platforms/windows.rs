//! The tests, built for Windows and run under Wine.

use super::{Amount, LeftOut, without};
use crate::command::{Tests, all, few_random_cases, without_stacks};
use crate::compiler::CompilerServer;
use crate::run::Failure;
use crate::wine::Wine;
use crate::{hosts, quickstart};

/// The crates with tests. Together they share one build of their dependencies.
const CRATES: [&str; 6] = ["-p", "tvm-ffi-runtime", "-p", "tvm-ffi-codegen-cli", "-p", "tvm-ffi-codegen"];
const TESTS: [&str; 7] = ["--bins", "--test", "main", "--test", "cli", "--test", "library"];

/// Runs the quickstart, the tests of each crate, and the hosts with each backend's libraries. `All` adds unit tests and
/// the tests of generated code.
pub fn windows(amount: Amount) -> Result<Tests, Failure> {
    let wine = Wine::prepare()?;
    let compiler = CompilerServer::start(&wine)?;
    let mut tests = quickstart::check(wine.cargo(&[amount.build(), quickstart::RUN].concat()))?;
    let (units, generated): (&[&str], &[LeftOut]) = match amount {
        Amount::Part => (&[], &LeftOut::GENERATED),
        Amount::All => (&["--lib"], &[]),
    };
    let left_out = without(LeftOut::SAME.iter().chain(&LeftOut::TEXTS).chain(generated));
    let words = [amount.build(), &["test"], &CRATES, &TESTS, units].concat();
    let program = compiler.within(wine.cargo(&words)).args(&left_out);
    tests.add(all([few_random_cases(without_stacks(program))])?);
    match hosts::windows() {
        Ok(hosts) => tests.add(hosts),
        Err(mut failure) => {
            failure.tests.add(tests);
            return Err(failure);
        }
    }
    Ok(tests)
}
