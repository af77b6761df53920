//! The build with LLVM. Each step uses the same packages and features, so one build serves all.

use std::path::Path;

use crate::command::{Cmd, cargo, cmd, target_folder};
use crate::run::Failure;
use crate::tools::{self, CXX, LLVM_22};

/// LLVM, and the in-process linker where it is supported.
pub const FEATURES: &str = if cfg!(target_os = "linux") { "llvm22-1,libwild" } else { "llvm22-1" };

/// True if steps with LLVM can run here.
pub fn is_there() -> bool {
    [LLVM_22, CXX].iter().all(|tool| tools::ensure(tool).is_ok())
}

/// The library and the command line.
pub const SELECTION: [&str; 6] = ["-p", "tvm-ffi-codegen", "-p", "tvm-ffi-codegen-cli", "--features", FEATURES];

/// The test of the step `objects`, which needs this build for LLVM's rows.
pub const OBJECTS: &str = "objects::are_as_in_the_table";
/// The test of `fixtures/listings`, which needs this build for LLVM's listings.
pub const LISTINGS: &str = "listings::are_as_in_their_files";

/// The command line.
pub fn command_line(args: &[&str]) -> Result<Cmd, Failure> {
    // With the examples, which need the same features as the tests.
    cargo(&[&["build", "--quiet"], &SELECTION[..], &["--bins", "--examples"]].concat()).run()?;
    let program = Path::new("debug").join(format!("tvm-ffi-codegen{}", std::env::consts::EXE_SUFFIX));
    Ok(cmd(&target_folder().join(program).to_string_lossy(), args))
}

/// An example.
pub fn example(name: &str, args: &[&str]) -> Cmd {
    cargo(&[&["run", "--quiet", "--example", name, "--features", FEATURES, "--"], args].concat())
}
