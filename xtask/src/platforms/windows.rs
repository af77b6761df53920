//! The tests, built for Windows and run under Wine.

use super::{LeftOut, without};
use crate::command::{Tests, all, without_stacks};
use crate::compiler::CompilerServer;
use crate::run::Failure;
use crate::wine::Wine;
use crate::{hosts, quickstart};

/// The tests of each crate.
const TESTS: [&[&str]; 3] = [
    &["test", "-p", "tvm-ffi-runtime", "--lib", "--test", "main"],
    &["test", "-p", "tvm-ffi-codegen-cli"],
    &["test", "-p", "tvm-ffi-codegen", "--lib", "--test", "library"],
];

/// Runs the quickstart, the tests of each crate, and the hosts with each backend's libraries.
pub fn windows() -> Result<Tests, Failure> {
    let wine = Wine::prepare()?;
    let compiler = CompilerServer::start(&wine)?;
    let mut tests = quickstart::check(wine.cargo(quickstart::RUN))?;
    let left_out = without(LeftOut::SAME.iter().chain(&LeftOut::TEXTS));
    let runs = TESTS.map(|args| compiler.within(wine.cargo(args)).args(&left_out));
    tests.add(all(runs.map(without_stacks))?);
    match hosts::windows() {
        Ok(hosts) => tests.add(hosts),
        Err(mut failure) => {
            failure.tests.add(tests);
            return Err(failure);
        }
    }
    Ok(tests)
}
