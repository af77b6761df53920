//! Tests on other systems and machines than the one that runs them.

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

/// Tests that can't run on a platform.
struct LeftOut {
    /// The test's path, or a part that several have in common.
    test: &'static str,
    why: &'static str,
}

impl LeftOut {
    /// The operations of numbers, one by one, where they are compiled to the same instructions as on x86-64 Linux.
    const INTEGERS: Self = LeftOut { test: "op_tests::integers", why: "the instructions are those of x86-64 Linux" };
    const FLOATS: Self = LeftOut { test: "op_tests::floats", why: "the instructions are those of x86-64 Linux" };
    /// A table of what upstream's converters take.
    const UPSTREAM: Self =
        LeftOut { test: "upstream::wrappers_take", why: "what wrappers take is independent of the system" };
}

/// The arguments of a test binary that leave out these tests; prints each with its reason.
fn without(left_out: &[LeftOut]) -> Vec<&'static str> {
    let mut arguments = vec!["--"];
    for LeftOut { test, why } in left_out {
        println!("left out: {test}: {why}");
        arguments.extend(["--skip", test]);
    }
    arguments
}
