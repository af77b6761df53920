//! The quickstart and the tests as statically linked executables. Tests that load libraries are ignored, and the reason
//! is printed.

use super::{Amount, LeftOut, cargo_beside, without};
use crate::command::{Tests, all, few_random_cases, without_stacks};
use crate::quickstart;
use crate::run::Failure;

const TARGET: &str = "x86_64-unknown-linux-musl";
/// The compiler of C code in the benchmarks' dependencies. This code needs no headers, so the machine's compiler will
/// do if there is none for musl.
const COMPILER: (&str, &str) = ("CC_x86_64_unknown_linux_musl", "cc");

/// Runs the quickstart, which compiles in the process, and the runtime's tests. `All` adds the unit tests and the
/// library's integration tests.
pub fn statically_linked(amount: Amount) -> Result<Tests, Failure> {
    let quickstart = [amount.build(), quickstart::RUN, &["--target", TARGET]].concat();
    let mut tests = quickstart::check(cargo_beside(&quickstart).env(COMPILER.0, COMPILER.1))?;
    // `tvm-ffi-codegen` is selected in either case: its features give the quickstart and the tests one build of the
    // dependencies.
    let packages = ["test", "--target", TARGET, "-p", "tvm-ffi-codegen", "-p", "tvm-ffi-runtime", "--test", "main"];
    let others: &[&str] = if amount == Amount::All { &["--lib", "--test", "library"] } else { &[] };
    let left_out = without(LeftOut::SAME.iter().chain(&[LeftOut::LAUNCHES]).chain(&LeftOut::TEXTS));
    let words = [amount.build(), &packages, others, &left_out].concat();
    tests.add(all([few_random_cases(without_stacks(cargo_beside(&words))).env(COMPILER.0, COMPILER.1)])?);
    Ok(tests)
}
