//! The error of linking.

use std::io;
use std::path::PathBuf;

use target_lexicon::Triple;

use crate::diagnostic::{Diagnose, Diagnostic, DiagnosticKind, UndefinedSymbol};

/// The error of [`Linker::link`](super::Linker::link) and `Linker::link_in_process`. An existing file at the
/// library's path is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The linker can't make libraries for the target.
    #[error("can't link for {target}: {problem}")]
    Target {
        /// The target.
        target: Box<Triple>,
        /// The reason, or what is supported instead.
        problem: String,
    },
    /// No C compiler driver was found for the target.
    #[error("no C compiler to link with for {target}: {problem}\n(set CC_{} or CC to one)", target.to_string().replace('-', "_"))]
    NoDriver {
        /// The target.
        target: Box<Triple>,
        /// The programs that were tried.
        problem: String,
    },
    /// The name of a library is invalid.
    #[error("expected the name of a library, such as `m`, got {name:?}")]
    LibraryName {
        /// The name.
        name: String,
    },
    /// A file can't be read or written, or a program can't be started.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or program.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The library can't use the given runtime, a program or a DLL for Windows.
    #[error("{}: {problem}", path.display())]
    Runtime {
        /// The program or DLL.
        path: PathBuf,
        /// The reason.
        problem: String,
    },
    /// An object is for another machine than the library.
    #[error("{object} is for {found}, and the library for {target}; compile the object for that target")]
    Machine {
        /// The object: its file, or its place among those in memory.
        object: String,
        /// The machine that the object was compiled for.
        found: String,
        /// The library's target.
        target: Box<Triple>,
    },
    /// An object uses absolute addresses, or assumes that symbols are near which another library may define. A shared
    /// library can be loaded at any address.
    #[error("can't put {object} into a shared library: {problem}; compile as position-independent code (`-fPIC`)")]
    PositionDependent {
        /// A description of the object: its number in memory, its file, or its member of an archive.
        object: String,
        /// A description of the problem and the part that has it.
        problem: String,
    },
    /// The linker failed.
    #[error("linking failed ({status}): {command}\n{output}")]
    Failed {
        /// The linker's command, in shell syntax.
        command: String,
        /// The linker's exit status.
        status: String,
        /// The linker's output.
        output: String,
    },
    /// The linked library needs symbols that will be undefined when it is loaded; all of them are listed.
    #[error(
        "undefined symbol{s}: {list}; link what defines {them}, or allow {them} (`allow_undefined`, \
         `--allow-undefined`) where the program that loads the library does",
        s = if symbols.len() == 1 { "" } else { "s" },
        them = if symbols.len() == 1 { "it" } else { "them" },
        list = symbols.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    )]
    Undefined {
        /// The symbols, by name.
        symbols: Vec<UndefinedSymbol>,
    },
    /// The linker reported success but wrote no library.
    #[error("the linker succeeded without writing a library: {command}{}{output}", if output.is_empty() { "" } else { "\n" })]
    NothingWritten {
        /// The linker's command, in shell syntax.
        command: String,
        /// The linker's output.
        output: String,
    },
    /// The linker reported success but wrote only a part of the library.
    #[error(
        "the linker succeeded and wrote only a part of the library ({problem}); is the disk full? {command}\n{output}"
    )]
    Incomplete {
        /// The error of the first part that can't be read.
        problem: String,
        /// The linker's command, in shell syntax.
        command: String,
        /// The linker's output.
        output: String,
    },
}

impl Diagnose for LinkError {
    fn diagnostic(&self) -> Diagnostic {
        match self {
            LinkError::Undefined { symbols } => Diagnostic::undefined(self, symbols.iter().cloned()),
            LinkError::Target { target, .. } => Diagnostic::of_target(target.to_string(), self),
            _ => Diagnostic::plain(DiagnosticKind::Link, self),
        }
    }
}
