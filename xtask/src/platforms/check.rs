//! Lints for platforms that nothing here runs programs of, and for Windows: every crate, without LLVM.

use crate::command::{Tests, all, cargo};
use crate::run::Failure;

/// The platforms. Each gets the feature `libwild` where that crate compiles.
const TARGETS: &[(&str, bool)] =
    &[("aarch64-apple-darwin", true), ("aarch64-linux-android", true), ("x86_64-pc-windows-gnu", false)];

/// Clippy, which checks as the compiler does.
pub fn targets() -> Result<Tests, Failure> {
    let mut tests = Tests::default();
    for &(target, libwild) in TARGETS {
        let features: &[&str] = if libwild { &["--features", "tvm-ffi-codegen-cli/libwild"] } else { &[] };
        let everything = [&["--workspace", "--all-targets"], features].concat();
        let minimal = ["-p", "tvm-ffi-codegen", "--no-default-features"].to_vec();
        tests.add(all([everything, minimal].map(|set| {
            let name = target.replace('-', "_");
            cargo(&[&["clippy", "--target", target], &set[..], &["--", "-D", "warnings"]].concat())
                // Lints need no object of the C sources of dependencies, and so no compiler and SDK of the platform.
                .env(&format!("CC_{name}"), "true")
                .env(&format!("AR_{name}"), "true")
                .env("SDKROOT", "/")
        }))?);
        let without = if libwild { "LLVM" } else { "LLVM and libwild" };
        println!("{target}: every crate and feature but {without}");
    }
    Ok(tests)
}
