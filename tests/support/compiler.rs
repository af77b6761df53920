//! The C and C++ compilers that make the tests' own code for the machine that the tests run on.

use std::process::Command;

/// `CC`, or `cc`.
pub fn c() -> Command {
    named("CC", "cc")
}

/// `CXX`, or `c++`.
pub fn cpp() -> Command {
    named("CXX", "c++")
}

fn named(variable: &str, default: &str) -> Command {
    Command::new(std::env::var_os(variable).unwrap_or_else(|| default.into()))
}
