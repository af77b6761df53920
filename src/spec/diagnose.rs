//! Structured diagnostics for errors in signatures.

use super::{Mistake, ParseError, SignatureError, SyntaxError};
use crate::diagnostic::{Diagnose, DiagnosedMistake, Diagnostic, DiagnosticKind};

impl Diagnose for SyntaxError {
    fn diagnostic(&self) -> Diagnostic {
        let mistake = |error: &SyntaxError| DiagnosedMistake {
            span: Some(error.span.clone()),
            line: Some(error.line),
            column: Some(error.column),
            expected: error.expected().map(str::to_owned),
            got: error.got().map(str::to_owned),
            ..DiagnosedMistake::new(error.message.clone(), None)
        };
        let mistakes = [self].into_iter().chain(self.more()).map(mistake);
        Diagnostic::with_mistakes(DiagnosticKind::Signature, self, mistakes)
    }
}

impl Diagnose for SignatureError {
    fn diagnostic(&self) -> Diagnostic {
        let mistake = |mistake: &Mistake| DiagnosedMistake {
            span: mistake.span(),
            expected: mistake.expected().map(str::to_owned),
            got: mistake.got().map(str::to_owned),
            ..DiagnosedMistake::new(mistake.problem().to_owned(), Some(mistake.path().to_string()))
        };
        Diagnostic::with_mistakes(DiagnosticKind::Signature, self, self.mistakes.iter().map(mistake))
    }
}

impl Diagnose for ParseError {
    fn diagnostic(&self) -> Diagnostic {
        match self {
            ParseError::Syntax(error) => error.diagnostic(),
            ParseError::Mistakes(error) => error.diagnostic(),
        }
    }
}
