//! The quickstart and the tests as statically linked executables. Tests that load libraries are ignored, with the reason.

use super::{LeftOut, without};
use crate::command::{Tests, all, cargo, without_stacks};
use crate::quickstart;
use crate::run::Failure;

const TARGET: &str = "x86_64-unknown-linux-musl";

/// Quickstart, unit tests and integration tests.
pub fn statically_linked() -> Result<Tests, Failure> {
    let mut tests = quickstart::check(cargo(&[quickstart::RUN, &["--target", TARGET]].concat()))?;
    let words =
        ["test", "--target", TARGET, "-p", "tvm-ffi-codegen", "-p", "tvm-ffi-runtime", "--lib", "--test", "main"];
    let words = [&words[..], &without(&[LeftOut::INTEGERS, LeftOut::FLOATS, LeftOut::UPSTREAM])].concat();
    tests.add(all([without_stacks(cargo(&words)).env("PROPTEST_CASES", "4")])?);
    Ok(tests)
}
