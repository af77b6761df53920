//! Errors of this backend.

#[cfg(feature = "llvm22-1-loaded")]
use std::path::PathBuf;

use thiserror::Error;

/// An error of the LLVM backend.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// This libLLVM doesn't support the target, or wrappers can't run there.
    #[error("can't generate code for target `{target}`: {reason}")]
    UnsupportedTarget {
        /// The target triple.
        target: String,
        /// The reason.
        reason: String,
    },
    /// LLVM is loaded at first use, and was not found.
    #[cfg(feature = "llvm22-1-loaded")]
    #[error(
        "LLVM {version} is not installed, or not found: install its shared library (`libllvm22` of Debian and \
         apt.llvm.org, `llvm@22` of Homebrew), or name its file by {variable}; tried {}",
        files.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    NotLoaded {
        /// The required version.
        version: String,
        /// The environment variable that names the file.
        variable: &'static str,
        /// The files that were tried.
        files: Vec<UnusableFile>,
    },
    /// The module was made for big-endian targets; this backend supports only little-endian ones.
    #[error("the module is for big-endian targets, and LLVM is used for little-endian ones")]
    Endianness,
    /// The module already defines the name.
    #[error("`{name}` is already defined in the module; give the function another name")]
    Duplicate {
        /// The symbol.
        name: String,
    },
    /// The module uses the name for something other than a function.
    #[error("`{name}` is not a function in the module, but a function is needed")]
    NotAFunction {
        /// The symbol.
        name: String,
    },
    /// The module uses the name for something other than a writable variable.
    #[error("`{name}` is no writable variable in the module, but one is needed")]
    NotAVariable {
        /// The symbol.
        name: String,
    },
    /// The module declares a function of that name with another type.
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
    /// The code contains something that only a separate object file supports.
    #[error("{what} can't be added to a module, only put into an object file")]
    OnlyInObjects {
        /// The unsupported part, in words.
        what: String,
    },
    /// LLVM rejected the source of a module from elsewhere.
    #[error("{message}")]
    Source {
        /// LLVM's message.
        message: String,
    },
    /// LLVM can't compile a caller's module.
    #[error("LLVM can't compile the module: {message}")]
    Caller {
        /// LLVM's message.
        message: String,
    },
    /// LLVM rejected its input. This is a bug of this library.
    #[error("internal error: LLVM can't compile the module: {message}\n{listing}")]
    Codegen {
        /// LLVM's message.
        message: String,
        /// The module as passed to LLVM.
        listing: String,
    },
}

/// A file that was tried as LLVM's shared library and can't be used.
#[cfg(feature = "llvm22-1-loaded")]
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{}: {problem}", file.display())]
#[non_exhaustive]
pub struct UnusableFile {
    /// The file's path, or its name for the dynamic linker.
    pub file: PathBuf,
    /// Why it can't be used.
    pub problem: FileProblem,
}

/// Why a file can't be used as LLVM's shared library.
#[cfg(feature = "llvm22-1-loaded")]
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// The dynamic linker can't load it.
    #[error("{message}")]
    NotLoadable {
        /// The dynamic linker's message, without the file's name at its beginning.
        message: String,
    },
    /// The library isn't LLVM.
    #[error("it is not LLVM")]
    NotLlvm,
    /// The library is another version of LLVM.
    #[error("it is LLVM {major}.{minor}.{patch}")]
    OtherVersion {
        /// The first part of the version.
        major: u32,
        /// The second part.
        minor: u32,
        /// The third part.
        patch: u32,
    },
    /// The library lacks a function of LLVM's C API.
    #[error("it has no function `{name}`")]
    NoFunction {
        /// The function.
        name: &'static str,
    },
}
