//! The quickstart and the tests as statically linked executables. Tests that load libraries are ignored, with the reason.

use super::{LeftOut, without};
use crate::command::{Tests, all, cargo};
use crate::quickstart;
use crate::run::Failure;

const TARGET: &str = "x86_64-unknown-linux-musl";

/// What this machine's own tests have shown of the same machine code.
const LEFT_OUT: &[LeftOut] = &[LeftOut { test: "backend::", why: "the machine code is that of x86-64 Linux" }];

/// Quickstart, unit tests and integration tests.
pub fn statically_linked() -> Result<Tests, Failure> {
    let mut tests = quickstart::check(cargo(&[quickstart::RUN, &["--target", TARGET]].concat()))?;
    let words =
        ["test", "--target", TARGET, "-p", "tvm-ffi-codegen", "-p", "tvm-ffi-runtime", "--lib", "--test", "main"];
    tests.add(all([cargo(&[&words[..], &without(LEFT_OUT)].concat()).env("PROPTEST_CASES", "4")])?);
    Ok(tests)
}
