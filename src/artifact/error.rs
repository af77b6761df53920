//! What can go wrong while an artifact is made.

use crate::backend::CodegenError;
use crate::lower::LowerError;

/// The error of making an object file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The mistakes of all functions, in their order.
    #[error("{}", list(.0))]
    Functions(Vec<LowerError>),
    /// The backend has no code generator for the target, or can't make an object for it.
    #[error(transparent)]
    Codegen(#[from] CodegenError),
}

fn list(mistakes: &[LowerError]) -> String {
    let texts: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    texts.join("\n")
}
