//! Errors as the command line reports them.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::{Value, json};
use tvm_ffi_codegen::ParseError;
use tvm_ffi_codegen::diagnostic::Diagnostic;

/// How errors are written to stderr.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, ValueEnum)]
pub enum MessageFormat {
    /// Text, for people.
    #[default]
    Text,
    /// A JSON object in one line, for programs.
    Json,
}

/// The reason why the command failed.
#[derive(Debug)]
pub enum CliError {
    /// The arguments are invalid.
    Usage(String),
    /// The arguments are valid, but the operation failed.
    Failure(Box<Failure>),
}

/// A failure: the problem, and its location.
#[derive(Debug)]
pub struct Failure {
    /// The file or stream that has the error, or that can't be read or written.
    place: Option<String>,
    /// The line of the file that has the signature, from 1.
    line: Option<usize>,
    diagnostic: Diagnostic,
}

/// The source of a signature's text.
#[derive(Clone, Copy, Debug)]
pub enum TextLocation<'a> {
    /// In the arguments, so messages need no location.
    Argument,
    /// All of stdin.
    Stdin,
    /// In a line of a file.
    File {
        /// The file's path, or `-` for stdin.
        path: &'a str,
        /// The line's number, from 1.
        line: usize,
        /// The number of characters before the text in its line.
        indent: usize,
    },
}

impl CliError {
    /// A failure at a location: `place: problem`.
    pub fn at(place: impl Display, problem: impl Display) -> Self {
        let diagnostic = Diagnostic::text(problem.to_string());
        CliError::Failure(Box::new(Failure { place: Some(place.to_string()), line: None, diagnostic }))
    }

    /// A failure that has a file's path.
    pub fn at_path(path: &Path, problem: impl Display) -> Self {
        Self::at(path.display(), problem)
    }

    /// A failure to read a signature.
    pub fn in_text(place: TextLocation<'_>, text: &str, error: &ParseError) -> Self {
        let mut diagnostic = Diagnostic::of(error).in_text(text);
        let (place, line) = match place {
            TextLocation::Argument => (None, None),
            TextLocation::Stdin => (Some("stdin".to_owned()), None),
            TextLocation::File { path, line, indent } => {
                for error in &mut diagnostic.errors {
                    error.line = error.line.map(|_| line);
                    error.column = error.column.map(|column| column + indent);
                }
                (Some(path.to_owned()), Some(line))
            }
        };
        CliError::Failure(Box::new(Failure { place, line, diagnostic }))
    }

    /// Prints the error to stderr, and returns the exit code.
    pub fn report(&self, format: MessageFormat) -> ExitCode {
        let text = match format {
            MessageFormat::Text => format!("tvm-ffi-codegen: error: {}", self.text()),
            MessageFormat::Json => self.json().to_string(),
        };
        // if stderr is full or closed, only the exit code reports the error; `eprintln!` would panic
        let _ = writeln!(io::stderr(), "{text}");
        ExitCode::from(match self {
            CliError::Usage(_) => 2,
            CliError::Failure(_) => 1,
        })
    }

    fn text(&self) -> String {
        match self {
            // clap's messages already begin with `error: `
            CliError::Usage(text) => text.strip_prefix("error: ").unwrap_or(text).trim_end().to_owned(),
            CliError::Failure(failure) => {
                let line = failure.line.map(|line| format!(":{line}")).unwrap_or_default();
                let place = failure.place.as_ref().map(|place| format!("{place}{line}: ")).unwrap_or_default();
                format!("{place}{}", failure.diagnostic.message.trim_end())
            }
        }
    }

    /// The error's parts, as docs/reference/errors.md lists them.
    fn json(&self) -> Value {
        match self {
            CliError::Usage(_) => json!({ "kind": "UsageError", "message": self.text() }),
            CliError::Failure(failure) => {
                let mut json: Value = serde_json::from_str(&failure.diagnostic.to_json()).unwrap_or_default();
                if let Some(place) = &failure.place {
                    json["place"] = place.as_str().into();
                }
                if let Some(line) = failure.line {
                    json["line"] = line.into();
                }
                json
            }
        }
    }
}

/// The failure of a file or stream. Its message is the error's `Display`, which has the lines of the text.
pub fn failure_in(place: String, error: impl Error + 'static) -> CliError {
    let diagnostic = Diagnostic::of(&error);
    CliError::Failure(Box::new(Failure { place: Some(place), line: None, diagnostic }))
}

/// A failure whose message is the error's `Display`.
pub fn failure(error: impl Error + 'static) -> CliError {
    let diagnostic = Diagnostic::of(&error);
    CliError::Failure(Box::new(Failure { place: None, line: None, diagnostic }))
}
