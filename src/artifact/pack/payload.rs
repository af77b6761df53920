//! The bytes of modules, and the errors of writing them into an object.

use std::io;
use std::path::PathBuf;

use target_lexicon::Triple;
use tvm_ffi_runtime::unstable::library_bin::LibraryBinError;

/// The bytes of a module, or the file that they are in.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Payload {
    /// A regular file of any size; all of it is used.
    File(PathBuf),
    /// Bytes in memory.
    Bytes(Vec<u8>),
}

/// The error of [`PackBuilder::write_object`](super::PackBuilder::write_object). An existing file at the
/// object's path is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// This crate doesn't know the object format or the machine of the target.
    #[error(
        "can't make objects for {0}: expected ELF (x86-64, aarch64, riscv64, s390x), Mach-O or COFF (x86-64, aarch64)"
    )]
    Target(Triple),
    /// The prefix can't begin symbols.
    #[error("expected a prefix of letters, digits, `_`, `.` and `$` that doesn't begin with a digit, got {prefix:?}")]
    Prefix {
        /// The prefix as given.
        prefix: String,
    },
    /// The nodes don't form a tree that can be read back.
    #[error(transparent)]
    Tree(#[from] LibraryBinError),
    /// A payload can't be read.
    #[error("{}: {source}", path.display())]
    Payload {
        /// The payload's file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A payload's file changed its length while it was read.
    #[error("{}: it had {expected} bytes, and has {found} now", path.display())]
    Changed {
        /// The payload's file.
        path: PathBuf,
        /// The size in bytes before the payload was copied.
        expected: u64,
        /// The size in bytes after that; if the file ended early, the number of bytes read.
        found: u64,
    },
    /// The modules exceed what an object of the target can hold.
    #[error("{size} bytes are too many for a {format} object: it holds {limit}")]
    TooLarge {
        /// The object's format.
        format: &'static str,
        /// The size of all modules together in bytes.
        size: u64,
        /// The maximum number of bytes of the format.
        limit: u64,
    },
    /// The process has no free range of addresses of the modules' size.
    #[error("can't reserve {size} bytes of address space: {source}")]
    AddressSpace {
        /// The size of all modules together in bytes.
        size: u64,
        /// The system's error.
        source: io::Error,
    },
    /// The output can't be written.
    #[error("{}: {source}", path.display())]
    Output {
        /// The object's path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The object can't be assembled.
    #[error("can't write the object: {source}")]
    Object {
        /// The error of the object's writer.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
