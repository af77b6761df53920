//! The errors of making an object file.

use crate::lower::LowerError;

/// The error of [`LibraryBuilder::emit`](super::LibraryBuilder::emit).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// Mistakes in the functions: all that were found, in the order of the functions.
    #[error("{}", list(.0))]
    Functions(Vec<LowerError>),
    /// Cranelift has no code generator for the target, or can't make an object for it.
    #[cfg(feature = "cranelift")]
    #[error(transparent)]
    Cranelift(#[from] crate::backend::cranelift::Error),
    /// LLVM has no code generator for the target, or can't make an object for it.
    #[cfg(feature = "_llvm")]
    #[error(transparent)]
    Llvm(#[from] crate::backend::llvm::Error),
    /// A mistake of this crate, with a listing of the IR.
    #[error("internal error: {0}")]
    Internal(String),
}

fn list(mistakes: &[LowerError]) -> String {
    let texts: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    texts.join("\n")
}
