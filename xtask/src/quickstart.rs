//! The README's first command.

use crate::command::{Cmd, Output, Tests, root};
use crate::run::Failure;

/// The `cargo` arguments that run it.
pub const RUN: &[&str] = &["run", "--example", "quickstart"];

/// Runs it on any system. It must print the lines in the README.
pub fn check(run: Cmd) -> Result<Tests, Failure> {
    let Output { stdout, tests } = run.run()?;
    let failure = |what: String| Failure { what, tests };
    let readme = std::fs::read_to_string(root().join("README.md")).map_err(|e| failure(format!("README.md: {e}")))?;
    let printed = stdout.replace("\r\n", "\n");
    match !printed.is_empty() && readme.contains(printed.trim_end()) {
        true => Ok(tests),
        false => Err(failure("the README shows another output of the quickstart than it has".to_owned())),
    }
}
