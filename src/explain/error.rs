//! Errors of [`explain`](super::explain()).

use super::stage::Stage;
use crate::backend::{Backend, CodegenError};
use crate::diagnostic::{Diagnose, Diagnostic, DiagnosticKind};
use crate::lower::LowerError;

/// An error of [`explain`](super::explain()).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExplainError {
    /// The kernel doesn't fit the signature, or a body has errors.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The backend can't compile the wrapper.
    #[error(transparent)]
    Codegen(#[from] CodegenError),
    /// The stage is [`Stage::Launch`], but the kernel is not a launch and makes none.
    #[error("`{function}` launches nothing")]
    NoLaunch {
        /// The function's name.
        function: String,
    },
    /// The backend doesn't have this stage.
    #[error("`{stage}` is not a stage of the backend {backend}")]
    NoSuchStage {
        /// The requested stage.
        stage: Stage,
        /// The backend without that stage.
        backend: Backend,
    },
}

impl Diagnose for ExplainError {
    fn diagnostic(&self) -> Diagnostic {
        match self {
            ExplainError::Lower(error) => error.diagnostic(),
            ExplainError::Codegen(error) => error.diagnostic(),
            ExplainError::NoLaunch { .. } | ExplainError::NoSuchStage { .. } => {
                Diagnostic::plain(DiagnosticKind::Other, self)
            }
        }
    }
}
