//! What can go wrong while an artifact is made.

use crate::lower::LowerError;

/// The error of making an object file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The mistakes of all functions, in their order.
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
    /// Our own mistake, with the IR's listing.
    #[error("internal error: {0}")]
    Internal(String),
}

fn list(mistakes: &[LowerError]) -> String {
    let texts: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    texts.join("\n")
}
