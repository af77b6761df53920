//! Tests on other systems and machines.

mod aarch64;
mod check;
#[cfg(test)]
mod held;
mod musl;
mod windows;

pub use aarch64::jit as aarch64_jit;
pub use check::targets as check_targets;
pub use musl::statically_linked as musl;
pub use windows::windows;

use crate::command::{Cmd, cargo, target_folder};
use crate::with_llvm;

/// `cargo` with a target directory for steps that run beside others, which would wait for each other's builds in one.
fn cargo_beside(words: &[&str]) -> Cmd {
    cargo(words).env("CARGO_TARGET_DIR", &target_folder().join("platforms").to_string_lossy())
}

/// The amount of tests on a platform.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum Amount {
    /// Code that depends on the platform: for `cargo xtask test`.
    Part,
    /// Everything that can run there: for `cargo xtask soak`.
    All,
}

impl Amount {
    /// Options of `cargo` for the build. Cranelift takes two minutes longer to optimise than it gains in a part of the
    /// tests.
    fn build(self) -> &'static [&'static str] {
        const UNOPTIMISED: &[&str] = &[
            "--config",
            "profile.dev.package.cranelift-codegen.opt-level=0",
            "--config",
            "profile.dev.package.regalloc2.opt-level=0",
        ];
        if self == Amount::Part { UNOPTIMISED } else { &[] }
    }
}

/// Tests that are left out on a platform.
struct LeftOut {
    /// The test's path, or a part that several paths share.
    test: &'static str,
    why: &'static str,
}

impl LeftOut {
    const fn new(test: &'static str, why: &'static str) -> Self {
        LeftOut { test, why }
    }

    /// Tests of code that is the same on each system with this machine's processor.
    const SAME: [Self; 8] = [
        Self::new("op_tests::integers", INSTRUCTIONS),
        Self::new("op_tests::floats", INSTRUCTIONS),
        Self::new("upstream::wrappers_take", "what wrappers take is independent of the system"),
        Self::new("prototypes::up_to_forty", "`native::up_to_forty` has the system's calling convention"),
        Self::new("property::", FIXTURES),
        Self::new("calls::graphs", FIXTURES),
        Self::new("calls::every_call_may_fail", "what calls release is independent of the system"),
        Self::new(with_llvm::OBJECTS, "the step `objects` compares them, for each machine"),
    ];
    /// Tests of texts and of the lowering, which depend on no system.
    const TEXTS: [Self; 10] = [
        Self::new("accesses::", TEXT),
        Self::new("owners::", TEXT),
        Self::new("growth::", TEXT),
        Self::new("ir_text::", TEXT),
        Self::new("explain::", TEXT),
        Self::new("fuzz::", TEXT),
        Self::new("spec::", TEXT),
        Self::new("host_text::generated", TEXT),
        Self::new("example_compilers::names", TEXT),
        Self::new("gpu::code_objects", "images are read alike on each system"),
    ];
    /// Tests of generated code, and of the library apart from files, processes, threads and C code.
    const GENERATED: [Self; 13] = [
        Self::new("bodies::", LOWERING),
        Self::new("contract::", LOWERING),
        Self::new("dispatch_table::", LOWERING),
        Self::new("example_compilers::", LOWERING),
        Self::new("fixtures::", LOWERING),
        Self::new("gpu::", "`cargo xtask soak` launches on each system"),
        Self::new("host_text::", LOWERING),
        Self::new("lower_errors::", LOWERING),
        Self::new("prototypes::", LOWERING),
        Self::new("records::", LOWERING),
        Self::new("stated_args::", LOWERING),
        Self::new("upstream::", LOWERING),
        Self::new("variants::", LOWERING),
    ];
    /// The tests of launches, on a stand-in driver that is a shared library.
    const LAUNCHES: Self = Self::new("gpu::", "a static executable loads no driver");
}

/// Reasons that several tests share.
const TEXT: &str = "texts, and the code made from them, are the same on each system";
const INSTRUCTIONS: &str = "the instructions are those of x86-64 Linux";
const LOWERING: &str = "what is generated depends on no system; `cargo xtask soak` runs it there";
const FIXTURES: &str = "the fixtures have the system's calling convention";

/// The arguments of a test binary that leave out these tests. Prints each test with its reason.
fn without<'a>(left_out: impl IntoIterator<Item = &'a LeftOut>) -> Vec<&'static str> {
    let mut arguments = vec!["--"];
    for LeftOut { test, why } in left_out {
        println!("left out: {test}: {why}");
        arguments.extend(["--skip", test]);
    }
    arguments
}
