//! The tests of generated code, emulated on aarch64 Linux: the Cranelift JIT compiles and runs code there.

use super::{Amount, LeftOut, cargo_beside, without};
use crate::command::{Tests, all, without_stacks};
use crate::run::Failure;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const COMPILER: &str = "aarch64-linux-gnu-gcc";

const RUNTIME: &[&str] = &["-p", "tvm-ffi-runtime", "--test", "main"];

/// Tests of the runtime that start their own program again, which the system can't run without the emulator. Also the
/// tests that take the emulator most of its time.
const LEFT_OUT: &[LeftOut] = &[
    alone("allocators_may_use_the_runtime"),
    alone("captures_are_aligned_whatever_the_allocator_gives"),
    alone("counts_that_would_wrap_end_the_process"),
    alone("errors_are_raised_without_memory"),
    alone("every_global_function_stands_any_arguments"),
    alone("many_types_with_attributes_take_little_memory"),
    alone("signals_come_back_as_a_code"),
    alone("stacks_are_captured_with_memory_alone"),
    alone("tensors_without_memory_are_errors"),
    alone("upgrades_that_would_wrap_end_the_process"),
    alone("whole_stacks_are_in_upstreams_form"),
    long("deep_values_cause_no_recursion"),
    long("a_cycle_is_an_error"),
    long("values_that_contain_themselves_are_errors"),
];

const fn alone(test: &'static str) -> LeftOut {
    LeftOut::new(test, "it starts its own program again, which is not one of this machine")
}

const fn long(test: &'static str) -> LeftOut {
    LeftOut::new(test, "it is long, and of code that has no recursion on any CPU")
}

/// The tests to run of each crate. The emulator takes twelve times as long as the machine. So tests of texts, files and
/// signatures, which don't depend on the CPU, are left out. The tests of `native` cover the calling conventions, and
/// those of `bodies` the operations on numbers.
const TESTS: [&[&str]; 2] = [
    RUNTIME,
    &[
        "-p",
        "tvm-ffi-codegen",
        "--test",
        "library",
        "--",
        "fixtures::",
        "bodies::",
        "prototypes::special",
        "link::",
        "native::",
        "--skip",
        "gpu::",
        // it starts its own program again
        "--skip",
        "names_of_files_are_no_options",
    ],
];

/// Unit tests of the runtime, the engine and operations, which `All` adds.
const UNITS: [&[&str]; 2] = [
    &["-p", "tvm-ffi-runtime", "--lib"],
    &["-p", "tvm-ffi-codegen", "--lib", "--", "engine::tests", "engine::symbols", "op_tests::flow", "op_tests::memory"],
];

/// Runs the tests of the runtime, fixtures, bodies, and calling conventions.
pub fn jit(amount: Amount) -> Result<Tests, Failure> {
    let left_out = without(LEFT_OUT);
    let units = if amount == Amount::All { &UNITS[..] } else { &[] };
    all(TESTS.iter().chain(units).map(|tests| {
        let left_out = if *tests == RUNTIME { &left_out[..] } else { &[] };
        // With Cranelift optimised: the emulator takes longer for the tests than for the optimised part of the build.
        without_stacks(cargo_beside(&[&["test", "--target", TARGET][..], tests, left_out].concat()))
            .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", COMPILER)
            .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu")
            // the interpreter is the same on each CPU
            .env("TVM_FFI_CODEGEN_EXECUTOR", "cranelift, optimised")
            // the C compiler for the tests' C code
            .env("CC", COMPILER)
    }))
}
