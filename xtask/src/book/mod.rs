//! The book in `docs/`: mdBook builds it, its links lead somewhere, its generated parts are current, it has what the
//! sources list, and the programs of its first pages print what the pages say.

mod documented;
mod links;
mod reference;
mod starts;

use std::process::ExitCode;

use crate::command::{Cmd, Tests, cargo, cmd, debug_program, root, target_folder};
use crate::run::Failure;
use crate::tools::{MDBOOK, ensure, python_package};

use starts::Installed;
pub use starts::program as start_program;

/// The step `book`.
pub fn check() -> Result<Tests, Failure> {
    reference::check()?;
    documented::check()?;
    build().run()?;
    links::check(&folder())?;
    starts::check(Installed::Built)
}

/// The programs of the first pages, with the files of the release alone.
pub fn starts() -> Result<Tests, Failure> {
    starts::check(Installed::Released)
}

/// The page for Rust, with the packed crates.
pub fn rust_start() -> Result<(), Failure> {
    starts::follow(starts::RUST, Installed::Released)
}

/// The page for the command line, with another program than this machine's: a shell script that runs it.
pub fn command_line_start(script: &str) -> Result<(), Failure> {
    starts::follow(starts::COMMAND_LINE, Installed::Script(script))
}

/// `cargo xtask book`: writes the generated parts anew, and builds the pages.
pub fn task() -> ExitCode {
    let result = match ensure(&MDBOOK) {
        Ok(_) => reference::write().and_then(|()| build().run()).and_then(|_| links::check(&folder())),
        Err(why) => Err(failed(why)),
    };
    match result {
        Ok(()) => {
            println!("{}", folder().join("index.html").display());
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{}", failure.what);
            ExitCode::FAILURE
        }
    }
}

/// The directory of the built pages.
fn folder() -> std::path::PathBuf {
    target_folder().join("book")
}

fn build() -> Cmd {
    let program = python_package(&MDBOOK).join("bin/mdbook");
    let to = folder();
    cmd(&program.to_string_lossy(), &["build", "docs", "--dest-dir", &to.to_string_lossy()])
}

/// Builds the command line. With an example, its dependencies have the features and the build of other steps.
fn command_line() -> Result<std::path::PathBuf, Failure> {
    let packages = ["-p", "tvm-ffi-codegen-cli", "-p", "tvm-ffi-codegen", "--bins", "--example", "quickstart"];
    cargo(&[&["build", "--quiet"], &packages[..]].concat()).run()?;
    Ok(debug_program("tvm-ffi-codegen"))
}

fn failed(what: impl Into<String>) -> Failure {
    Failure { what: what.into(), tests: Tests::default() }
}

/// Reads a file of the repository.
fn read(path: &str) -> Result<String, Failure> {
    std::fs::read_to_string(root().join(path)).map_err(|e| failed(format!("{path}: {e}")))
}
