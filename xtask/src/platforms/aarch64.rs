//! The tests of code, on aarch64 Linux by an emulator: the Cranelift JIT compiles and runs it there.

use super::{LeftOut, without};
use crate::command::{Tests, all, cargo, without_stacks};
use crate::run::Failure;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const COMPILER: &str = "aarch64-linux-gnu-gcc";

const RUNTIME: &[&str] = &["-p", "tvm-ffi-runtime", "--lib", "--test", "main"];

/// Tests of the runtime that start their own program again, which the system can't run without the emulator.
const ALONE: &[LeftOut] = &[
    alone("allocators_may_use_the_runtime"),
    alone("captures_are_aligned_whatever_the_allocator_gives"),
    alone("counts_that_would_wrap_end_the_process"),
    alone("many_types_with_attributes_take_little_memory"),
    alone("signals_come_back_as_a_code"),
    alone("upgrades_that_would_wrap_end_the_process"),
    alone("whole_stacks_are_in_upstreams_form"),
];

const fn alone(test: &'static str) -> LeftOut {
    LeftOut { test, why: "it starts its own program again, which is not one of this machine" }
}

/// What is run of each crate's tests. The emulator takes twelve times as long as the machine, so that tests of texts, files and signatures, which don't
/// depend on the CPU, are not among them.
const TESTS: [&[&str]; 3] = [
    RUNTIME,
    &[
        "-p",
        "tvm-ffi-codegen",
        "--lib",
        "--",
        "engine::tests",
        "engine::symbols",
        "op_tests::flow",
        "op_tests::memory",
        "op_tests::integers::i32",
    ],
    &[
        "-p",
        "tvm-ffi-codegen",
        "--test",
        "main",
        "--",
        "fixtures::",
        "bodies::",
        "property::",
        "prototypes::up_to_forty_arguments_flat",
        "prototypes::special",
        "link::",
        "native::",
    ],
];

/// Tests of the engine, operations, fixtures, bodies, the flat convention, and a few property tests.
pub fn jit() -> Result<Tests, Failure> {
    let alone = without(ALONE);
    all(TESTS.map(|tests| {
        let left_out = if tests == RUNTIME { &alone[..] } else { &[] };
        without_stacks(cargo(&[&["test", "--target", TARGET], tests, left_out].concat()))
            .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", COMPILER)
            .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu")
            .env("PROPTEST_CASES", "2")
            // what tests compile with
            .env("CC", COMPILER)
    }))
}
