//! The error of a backend, whichever it is.

use crate::ir::VerifyError;

/// Why there is no code. The errors of all who make code have this as a part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodegenError {
    /// Cranelift can't make the code, or its module can't take it.
    #[cfg(feature = "cranelift")]
    #[error(transparent)]
    Cranelift(#[from] super::cranelift::Error),
    /// LLVM can't make the code, or its module can't take it.
    #[cfg(feature = "_llvm")]
    #[error(transparent)]
    Llvm(#[from] super::llvm::Error),
    /// A mistake of this library, such as invalid IR, whose listing the text has.
    #[error("internal error: {0}")]
    Internal(String),
}

impl CodegenError {
    /// A mistake of this library.
    #[cfg(feature = "_engine")] // without a backend nobody makes code
    pub(crate) fn internal(text: impl Into<String>) -> Self {
        CodegenError::Internal(text.into())
    }
}

/// Lowering makes valid IR, so that anything else is a mistake of this library.
impl From<VerifyError> for CodegenError {
    fn from(error: VerifyError) -> Self {
        CodegenError::Internal(format!("lowering made invalid IR\n{error}"))
    }
}
