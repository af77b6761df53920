//! The tests on aarch64 Linux, by an emulator: the Cranelift JIT compiles and runs code there.

use super::{LeftOut, without};
use crate::command::{Tests, cargo};
use crate::run::Failure;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const COMPILER: &str = "aarch64-linux-gnu-gcc";

const LEFT_OUT: &[LeftOut] = &[
    LeftOut {
        test: "artifact::hostile::many_functions_are_found_in_time",
        why: "an emulator takes longer than its limit",
    },
    LeftOut { test: "artifact::memory", why: "it starts itself again, and measures the emulator's memory" },
    LeftOut {
        test: "artifact::objects::system_libraries_register_at_start_up",
        why: "it starts a program that it links",
    },
];

/// Unit tests, fixtures, bodies and a few property tests.
pub fn jit() -> Result<Tests, Failure> {
    let tests =
        ["test", "--target", TARGET, "-p", "tvm-ffi-codegen", "-p", "tvm-ffi-runtime", "--lib", "--test", "main"];
    let command = cargo(&[&tests[..], &without(LEFT_OUT)].concat())
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", COMPILER)
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu")
        // an emulator is slow: optimizing takes less time than it saves
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
        .env("PROPTEST_CASES", "4")
        // what tests compile with
        .env("CC", COMPILER);
    Ok(command.run()?.tests)
}
