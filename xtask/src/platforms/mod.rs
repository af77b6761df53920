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

use crate::with_llvm;

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
    const TEXTS: [Self; 8] = [
        Self::new("growth::", TEXT),
        Self::new("ir_text::", TEXT),
        Self::new("explain::", TEXT),
        Self::new("fuzz::", TEXT),
        Self::new("spec::", TEXT),
        Self::new("host_text::generated", TEXT),
        Self::new("example_compilers::names", TEXT),
        Self::new("gpu::code_objects", "images are read alike on each system"),
    ];
    /// The tests of launches, on a stand-in driver that is a shared library.
    const LAUNCHES: Self = Self::new("gpu::", "a static executable loads no driver");
}

/// Reasons that several tests share.
const TEXT: &str = "texts, and the code made from them, are the same on each system";
const INSTRUCTIONS: &str = "the instructions are those of x86-64 Linux";
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
