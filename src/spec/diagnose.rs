//! Structured diagnostics for errors in signatures.

use super::{ParseError, PartError, SignatureError, SyntaxError};
use crate::diagnostic::{Diagnose, Diagnostic, DiagnosticKind, ErrorDetail};

impl SyntaxError {
    /// The parts of this error, without the ones after it.
    pub(crate) fn detail(&self) -> ErrorDetail {
        ErrorDetail {
            span: Some(self.span.clone()),
            line: Some(self.line),
            column: Some(self.column),
            expected: self.expected().map(str::to_owned),
            got: self.got().map(str::to_owned),
            ..ErrorDetail::new(self.message.clone(), None)
        }
    }
}

impl Diagnose for SyntaxError {
    fn diagnostic(&self) -> Diagnostic {
        let errors = [self].into_iter().chain(self.more()).map(SyntaxError::detail);
        Diagnostic::with_errors(DiagnosticKind::Signature, self, errors)
    }
}

impl Diagnose for SignatureError {
    fn diagnostic(&self) -> Diagnostic {
        let error = |error: &PartError| ErrorDetail {
            span: error.span(),
            expected: error.expected().map(str::to_owned),
            got: error.got().map(str::to_owned),
            ..ErrorDetail::new(error.problem().to_owned(), Some(error.path().to_string()))
        };
        Diagnostic::with_errors(DiagnosticKind::Signature, self, self.errors.iter().map(error))
    }
}

impl Diagnose for ParseError {
    fn diagnostic(&self) -> Diagnostic {
        match self {
            ParseError::Syntax(error) => error.diagnostic(),
            ParseError::Signature(error) => error.diagnostic(),
        }
    }
}
