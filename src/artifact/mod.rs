//! What a compiler ships: objects, for any target that a backend has, the modules that a library carries, archives and shared libraries;
//! and reading them back.
//!
//! `LibraryBuilder` makes an `ObjectFile` of signatures and kernels. A linker makes a shared library of one or several, or puts
//! them into a program.

mod archive;
#[cfg(feature = "_engine")]
mod error;
mod format;
mod inspect;
#[cfg(feature = "_engine")]
mod library;
mod link;
mod map;
#[cfg(feature = "_engine")]
mod object;
mod output;
mod pack;

pub use archive::{ArchiveError, ArchiveInput, write_archive};
#[cfg(feature = "_engine")]
pub use error::EmitError;
pub use inspect::{Binary, BinaryFunction, BinaryModule, InspectError, inspect};
#[cfg(feature = "_engine")]
pub use library::LibraryBuilder;
pub use link::{LinkError, Linker};
#[cfg(feature = "_engine")]
pub use object::ObjectFile;
pub use pack::{LibraryBinBuilder, NodeId, PackError, Payload};
pub use target_lexicon::Triple;
