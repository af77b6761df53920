//! The build with LLVM. Each step uses the same packages and features, so one build serves all.

use crate::command::{Cmd, cargo, cmd, debug_program};
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

/// The examples that steps run. Linking all the others takes a minute.
const EXAMPLES: [&str; 4] = ["dsl-cranelift", "dsl-llvm", "graph_compiler", "soak"];

/// The command line.
pub fn command_line(args: &[&str]) -> Result<Cmd, Failure> {
    program("tvm-ffi-codegen", args)
}

/// An example.
pub fn example(name: &str, args: &[&str]) -> Result<Cmd, Failure> {
    program(&format!("examples/{name}"), args)
}

/// A program, after a build of all: with examples, dependencies have the features that the tests need.
fn program(path: &str, args: &[&str]) -> Result<Cmd, Failure> {
    let examples = EXAMPLES.map(|name| ["--example", name]);
    cargo(&[&["build", "--quiet"], &SELECTION[..], &["--bins"], examples.as_flattened()].concat()).run()?;
    Ok(cmd(&debug_program(path).to_string_lossy(), args))
}
