//! Lints for platforms that nothing here runs programs of, and for Windows: every crate, without LLVM.
//!
//! Each platform has its own copy of all dependencies, which takes most of the time. So tests and their dependencies
//! are left out, and the features are linted by themselves for one.

use crate::command::{Tests, all, cargo};
use crate::run::Failure;

/// A platform.
struct Platform {
    target: &'static str,
    /// The feature `libwild` is among what is linted, as that crate compiles.
    libwild: bool,
    /// The library is linted without default features besides.
    minimal: bool,
}

const PLATFORMS: &[Platform] = &[
    Platform { target: "aarch64-apple-darwin", libwild: true, minimal: true },
    Platform { target: "aarch64-linux-android", libwild: false, minimal: false },
    Platform { target: "x86_64-pc-windows-gnu", libwild: false, minimal: false },
];

/// Clippy, which checks as the compiler does.
pub fn targets() -> Result<Tests, Failure> {
    let mut tests = Tests::default();
    for &Platform { target, libwild, minimal } in PLATFORMS {
        let features: &[&str] = if libwild { &["--features", "tvm-ffi-codegen-cli/libwild"] } else { &[] };
        let everything = [&["--workspace"], features].concat();
        let minimal = minimal.then(|| ["-p", "tvm-ffi-codegen", "--no-default-features"].to_vec());
        tests.add(all([Some(everything), minimal].into_iter().flatten().map(|set| {
            let name = target.replace('-', "_");
            cargo(&[&["clippy", "--target", target], &set[..], &["--", "-D", "warnings"]].concat())
                // Lints need no object of the C sources of dependencies, and so no compiler and SDK of the platform.
                .env(&format!("CC_{name}"), "true")
                .env(&format!("AR_{name}"), "true")
                .env("SDKROOT", "/")
        }))?);
        let without = if libwild { "LLVM" } else { "LLVM and libwild" };
        println!("{target}: every crate but its tests, each feature but {without}");
    }
    Ok(tests)
}
