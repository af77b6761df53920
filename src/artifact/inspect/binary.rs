//! The contents of an inspected file, and the error of reading one.

use std::io;
use std::path::PathBuf;

use tvm_ffi_runtime::abi::TVMFFIVersion;
use tvm_ffi_runtime::unstable::library_bin::LibraryBinError;

use crate::lower::LaunchDescription;

/// The error of [`inspect`](super::inspect) and [`defines_symbol`](super::defines_symbol).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// The file can't be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is neither an object nor a library, or it is broken.
    #[error("{}: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// A description of the problem and the broken part.
        problem: String,
    },
    /// The file's `__tvm_ffi__library_bin` is broken.
    #[error("{}: {source}", path.display())]
    LibraryBin {
        /// The file.
        path: PathBuf,
        /// The problem.
        source: LibraryBinError,
    },
}

/// The contents of an object or library, as [`inspect`](super::inspect) finds them.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Binary {
    /// The format: `ELF`, `Mach-O`, `COFF`, `PE`.
    pub format: &'static str,
    /// The machine, such as `X86_64`.
    pub architecture: String,
    /// Whether the file is linked (a library or a program) and not an object.
    pub linked: bool,
    /// The functions `__tvm_ffi_<name>`, by name.
    pub functions: Vec<BinaryFunction>,
    /// Whether the file defines `__tvm_ffi__library_ctx`, the variable for the address of the library's module.
    pub has_context: bool,
    /// The symbols that another file has to define, by name. Weak symbols may stay undefined and are omitted.
    pub needed_symbols: Vec<String>,
    /// The min version of TVM FFI that has all needed symbols which are its C functions; `None` if there are none. A
    /// process with an older version can't load the file.
    pub needed_tvm_ffi: Option<TVMFFIVersion>,
    /// The libraries that are loaded with the file, in order.
    pub needed_libraries: Vec<String>,
    /// The nodes of `__tvm_ffi__library_bin`, the root first; `None` if it isn't defined.
    pub modules: Option<Vec<BinaryModule>>,
}

/// A function of a [`Binary`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BinaryFunction {
    /// The function's name; in a system library, with the library's prefix.
    pub name: String,
    /// Whether the function has metadata: `__tvm_ffi__metadata_<name>`.
    pub has_metadata: bool,
    /// Whether the function has a doc: `__tvm_ffi__doc_<name>`.
    pub has_doc: bool,
    /// The metadata, as JSON. A function of the file returns it, but inspection calls no function. It is therefore
    /// known only for objects of this crate, where it is read from the data.
    pub metadata: Option<String>,
    /// The text form of the signature, from the metadata.
    pub signature: Option<String>,
    /// The doc; known in the same cases as the metadata.
    pub doc: Option<String>,
    /// The launches that the function makes, from the metadata.
    pub launches: Vec<LaunchDescription>,
}

/// A node of a [`Binary`]'s import tree.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BinaryModule {
    /// The module's kind; `_lib` is the library itself.
    pub kind: String,
    /// The size of the payload in bytes.
    pub size: u64,
    /// The indices of the nodes that the module imports.
    pub imports: Vec<usize>,
}
