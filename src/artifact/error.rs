//! The errors of emitting an object file.

use crate::backend::CodegenError;
use crate::diagnostic::{Diagnose, Diagnostic};
use crate::lower::{LowerError, diagnostic_of, lines};

/// The error of [`LibraryBuilder::emit`](super::LibraryBuilder::emit).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// Errors in the functions: all that were found, in the order of the functions.
    #[error("{}", lines(.0))]
    Functions(Vec<LowerError>),
    /// The backend has no code generator for the target, or can't emit an object for it.
    #[error(transparent)]
    Codegen(#[from] CodegenError),
}

impl Diagnose for EmitError {
    fn diagnostic(&self) -> Diagnostic {
        match self {
            EmitError::Functions(errors) => diagnostic_of(errors, self),
            EmitError::Codegen(error) => error.diagnostic(),
        }
    }
}
