//! The README's first command.

use crate::command::{Cmd, Output, Tests, root};
use crate::run::Failure;

/// Runs a command that is to print what the README says that the quickstart prints.
pub fn prints_what_the_readme_says(command: Cmd) -> Result<Tests, Failure> {
    let Output { stdout, tests } = command.run()?;
    let failure = |what: String| Failure { what, tests };
    let readme = std::fs::read_to_string(root().join("README.md")).map_err(|e| failure(format!("README.md: {e}")))?;
    match !stdout.trim().is_empty() && readme.contains(stdout.trim_end()) {
        true => Ok(tests),
        false => Err(failure("the README shows another output of the quickstart than it has".to_owned())),
    }
}
