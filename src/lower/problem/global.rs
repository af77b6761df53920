//! Problems of global functions.

/// Why a function of a library can't be registered as a global function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GlobalProblem {
    /// The library has no function of that name.
    #[error("the library has no such function")]
    NoSuchFunction,
    /// The name of the global function is empty or contains a NUL byte.
    #[error("the name is empty or holds a NUL byte")]
    InvalidName,
    /// The library registers another function under that name.
    #[error("the library registers it already")]
    Taken,
    /// The output is no library that is loaded as a file.
    #[error("only a library that is loaded as a file registers functions")]
    NotALibrary,
}
