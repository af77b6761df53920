//! The common parts of problems: expected and actual values, diagnostics, and lists in messages.

use std::error::Error;
use std::fmt::Display;

use crate::diagnostic::{Diagnostic, DiagnosticKind, ErrorDetail};

/// The expected value and the actual one, of a problem that is an unexpected value.
pub(super) type Mismatch = (String, String);

pub(super) fn mismatch(expected: impl Display, got: impl Display) -> Mismatch {
    (expected.to_string(), got.to_string())
}

/// The diagnostic of one problem.
pub(super) fn diagnostic_of(problem: &dyn Error, mismatch: Option<Mismatch>) -> Diagnostic {
    let (expected, got) = mismatch.unzip();
    let error = ErrorDetail { expected, got, ..ErrorDetail::new(problem.to_string(), None) };
    Diagnostic::with_errors(DiagnosticKind::Kernel, problem, [error])
}

/// Several problems in one message.
pub(in crate::lower) fn joined<P: Display>(problems: &[P]) -> String {
    problems.iter().map(P::to_string).collect::<Vec<_>>().join("; ")
}
