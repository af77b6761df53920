//! What a compiler ships: objects, the modules that a library carries, archives and shared libraries; and reading them back.

mod archive;
mod format;
mod inspect;
mod link;
mod map;
mod output;
mod pack;

pub use archive::{ArchiveError, ArchiveInput, write_archive};
pub use inspect::{Binary, BinaryFunction, BinaryModule, InspectError, inspect};
pub use link::{LinkError, Linker};
pub use pack::{LibraryBinBuilder, NodeId, PackError, Payload};
