//! The errors of making an object file.

use crate::backend::CodegenError;
use crate::lower::LowerError;

/// The error of [`LibraryBuilder::emit`](super::LibraryBuilder::emit).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// Mistakes in the functions: all that were found, in the order of the functions.
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
