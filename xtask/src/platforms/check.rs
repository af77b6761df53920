//! Lints every crate, without LLVM, for Windows and for platforms that can't run here.
//!
//! Each platform has its own copy of all dependencies, and checking them takes most of the time. So tests and their
//! dependencies are left out. One platform also lints the library without default features.

use super::{Amount, cargo_beside};
use crate::command::{Tests, all};
use crate::run::Failure;

/// A platform.
struct Platform {
    target: &'static str,
    /// Lints the feature `libwild` too, if that crate compiles for the platform.
    libwild: bool,
    /// Also lints the library without default features.
    minimal: bool,
    /// The least amount of tests that has this platform. The tests for Windows compile its code in any case.
    amount: Amount,
}

const PLATFORMS: &[Platform] = &[
    Platform { target: "aarch64-apple-darwin", libwild: true, minimal: true, amount: Amount::Part },
    Platform { target: "aarch64-linux-android", libwild: false, minimal: false, amount: Amount::All },
    Platform { target: "x86_64-pc-windows-gnu", libwild: false, minimal: false, amount: Amount::All },
];

/// Runs Clippy, which includes the compiler's checks.
pub fn targets(amount: Amount) -> Result<Tests, Failure> {
    let mut tests = Tests::default();
    for &Platform { target, libwild, minimal, .. } in PLATFORMS.iter().filter(|platform| amount >= platform.amount) {
        let whole = amount == Amount::All;
        let features: &[&str] = if libwild && whole { &["--features", "tvm-ffi-codegen-cli/libwild"] } else { &[] };
        let everything = [&["--workspace"], features].concat();
        let minimal = (minimal && whole).then(|| ["-p", "tvm-ffi-codegen", "--no-default-features"].to_vec());
        tests.add(all([Some(everything), minimal].into_iter().flatten().map(|set| {
            let name = target.replace('-', "_");
            cargo_beside(&[&["clippy", "--target", target], &set[..], &["--", "-D", "warnings"]].concat())
                // Lints don't need objects of the dependencies' C sources, and so no C compiler and SDK of the
                // platform.
                .env(&format!("CC_{name}"), "true")
                .env(&format!("AR_{name}"), "true")
                .env("SDKROOT", "/")
        }))?);
        let without = if libwild && whole { "LLVM" } else { "LLVM and libwild" };
        println!("{target}: every crate but its tests, each feature but {without}");
    }
    Ok(tests)
}
