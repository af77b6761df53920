//! The errors of a text of host functions.

use std::fmt;

use crate::diagnostic::{Diagnose, Diagnostic, DiagnosticKind};
use crate::spec::{MAX_ERRORS, ParseError, SyntaxError};

/// The errors of a text that isn't one of host functions: all errors of its grammar and its signatures.
///
/// ```
/// use tvm_ffi_codegen::HostProgram;
///
/// let error = HostProgram::parse("f(n: int64) -> int64 {\n  let m = n +;\n  return m ** 2;\n}").unwrap_err();
/// let found: Vec<_> = error.errors.iter().map(|error| (error.line, error.column, error.got())).collect();
/// assert_eq!(found, [(2, 14, Some("`;`")), (3, 13, Some("`*`"))]);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HostTextError {
    /// At least one error and at most 32, in order of appearance. None of them has [further
    /// errors](SyntaxError::more).
    pub errors: Vec<SyntaxError>,
}

impl HostTextError {
    pub(crate) fn new(mut errors: Vec<SyntaxError>) -> Self {
        errors.sort_by_key(|error| error.span.start);
        errors.truncate(MAX_ERRORS);
        HostTextError { errors }
    }
}

impl fmt::Display for HostTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, error) in self.errors.iter().enumerate() {
            let end = if number == 0 { "" } else { "\n" };
            write!(f, "{end}line {}: {error}", error.line)?;
        }
        Ok(())
    }
}

impl std::error::Error for HostTextError {}

impl Diagnose for HostTextError {
    fn diagnostic(&self) -> Diagnostic {
        let errors = self.errors.iter().map(SyntaxError::detail);
        Diagnostic::with_errors(DiagnosticKind::Kernel, self, errors)
    }
}

/// The errors of a signature in a text, each alone.
pub(super) fn of_signature(text: &str, error: ParseError) -> Vec<SyntaxError> {
    match error {
        ParseError::Syntax(error) => error.each(),
        ParseError::Signature(errors) => {
            let error = |part: &crate::spec::PartError| {
                let found = SyntaxError::new(text, part.span().unwrap_or_default(), part.to_string());
                match (part.expected(), part.got()) {
                    (Some(expected), Some(got)) => found.with_mismatch(expected, got),
                    _ => found,
                }
            };
            errors.errors.iter().map(error).collect()
        }
    }
}
