//! The quickstart and the tests as statically linked executables. Tests that load libraries are ignored, and the reason
//! is printed.

use super::{LeftOut, without};
use crate::command::{Tests, all, cargo, few_random_cases, without_stacks};
use crate::quickstart;
use crate::run::Failure;

const TARGET: &str = "x86_64-unknown-linux-musl";
/// The compiler of C code in the benchmarks' dependencies. This code needs no headers, so the machine's compiler will
/// do if there is none for musl.
const COMPILER: (&str, &str) = ("CC_x86_64_unknown_linux_musl", "cc");

/// Runs the quickstart, the unit tests and the integration tests.
pub fn statically_linked() -> Result<Tests, Failure> {
    let mut tests =
        quickstart::check(cargo(&[quickstart::RUN, &["--target", TARGET]].concat()).env(COMPILER.0, COMPILER.1))?;
    let crates = ["test", "--target", TARGET, "-p", "tvm-ffi-codegen", "-p", "tvm-ffi-runtime"];
    let words = [&crates[..], &["--lib", "--test", "library", "--test", "main"]].concat();
    let left_out = without(LeftOut::SAME.iter().chain(&[LeftOut::LAUNCHES]).chain(&LeftOut::TEXTS));
    let words = [&words[..], &left_out].concat();
    tests.add(all([few_random_cases(without_stacks(cargo(&words))).env(COMPILER.0, COMPILER.1)])?);
    Ok(tests)
}
