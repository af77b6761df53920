//! What goes wrong, as a user is told it.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

/// Why the command hasn't done what was asked.
#[derive(Debug)]
pub enum CliError {
    /// The arguments make no sense.
    Usage(String),
    /// They do, and it can't be done.
    Failure(String),
}

impl CliError {
    /// A failure of something: `place: problem`.
    pub fn at(place: impl Display, problem: impl Display) -> Self {
        CliError::Failure(format!("{place}: {problem}"))
    }

    /// Says it on stderr, and gives the exit code.
    pub fn report(&self) -> ExitCode {
        let (code, text) = match self {
            CliError::Usage(text) => (2, text),
            CliError::Failure(text) => (1, text),
        };
        // clap's texts have the word already
        let text = text.strip_prefix("error: ").unwrap_or(text).trim_end();
        // where stderr is full or closed the exit code alone tells; `eprintln!` would panic
        let _ = writeln!(io::stderr(), "tvm-ffi-codegen: error: {text}");
        ExitCode::from(code)
    }
}

/// A failure, said as its `Display` does.
pub fn failure(error: impl Display) -> CliError {
    CliError::Failure(error.to_string())
}
