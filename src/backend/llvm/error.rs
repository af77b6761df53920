//! What can go wrong in this backend.

use thiserror::Error;

/// An error of the LLVM backend.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// This libLLVM has no code generator for the target, or wrappers can't run there.
    #[error("can't generate code for target `{target}`: {reason}")]
    UnsupportedTarget {
        /// The target triple.
        target: String,
        /// The reason.
        reason: String,
    },
    /// LLVM is loaded when it is first used, and there is none.
    #[cfg(feature = "llvm22-1-loaded")]
    #[error(
        "LLVM {version} is not installed, or not found: install its shared library (`libllvm22` of Debian and apt.llvm.org, `llvm@22` of Homebrew), or name its file \
         by {variable}; tried {}",
        problems.join("; ")
    )]
    NotLoaded {
        /// The version that is needed.
        version: String,
        /// The environment variable that names the file.
        variable: &'static str,
        /// Each file that was tried, with the reason why it isn't LLVM's library.
        problems: Vec<String>,
    },
    /// The module was made for targets of another byte order: LLVM is used for little-endian ones.
    #[error("the module is for big-endian targets, and LLVM is used for little-endian ones")]
    Endianness,
    /// The module already defines the name.
    #[error("`{name}` is already defined in the module; give the function another name")]
    Duplicate {
        /// The symbol.
        name: String,
    },
    /// The module has the name for something else.
    #[error("`{name}` is not a function in the module, but a function is needed")]
    NotAFunction {
        /// The symbol.
        name: String,
    },
    /// The module has the name for something else than a variable.
    #[error("`{name}` is no writable variable in the module, but one is needed")]
    NotAVariable {
        /// The symbol.
        name: String,
    },
    /// The module declares a function of that name otherwise.
    #[error("`{name}` has another type in the module: expected `{expected}`, found `{found}`")]
    SignatureConflict {
        /// The symbol.
        name: String,
        /// The type that the wrapper needs.
        expected: String,
        /// The type that the module has.
        found: String,
    },
    /// The function belongs to another module.
    #[error("the function for `{name}` is not of this module; declare it here first")]
    OtherModule {
        /// The import.
        name: String,
    },
    /// The code has what only an object file of its own can have.
    #[error("{what} can't be added to a module, only put into an object file")]
    OnlyInObjects {
        /// The part of the code that it is, in words.
        what: String,
    },
    /// LLVM refused a module that somebody else has made.
    #[error("{message}")]
    Source {
        /// LLVM's words.
        message: String,
    },
    /// LLVM can't compile a module of the caller's.
    #[error("LLVM can't compile the module: {message}")]
    Caller {
        /// LLVM's words.
        message: String,
    },
    /// LLVM refused what it was given. This is a bug of this library.
    #[error("internal error: LLVM can't compile the module: {message}\n{listing}")]
    Codegen {
        /// LLVM's words.
        message: String,
        /// The module as it was given to LLVM.
        listing: String,
    },
}
