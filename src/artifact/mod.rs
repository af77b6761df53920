//! The files that a compiler ships: objects for any target of a backend, modules carried by a library, shared
//! libraries and archives. Also a reader for these files.
//!
//! A [`LibraryBuilder`] compiles signatures and kernels to an [`ObjectFile`]. A [`PackBuilder`] builds an
//! object with modules of other kinds. A [`Linker`] links such objects into a shared library, and [`write_archive`]
//! packs them into a static library. [`inspect()`] shows the contents of such a file. Each file is written completely
//! or not at all.
//!
//! The bundled runtime loads libraries ([`Module`](tvm_ffi_runtime::Module)). For all steps from signatures to a
//! loaded library, with the limits of each target, see
//! [the book](https://github.com/tvm-ffi-codegen/tvm-ffi-codegen/blob/main/docs/howto/libraries.md)
//! (`docs/howto/libraries.md`).

mod archive;
#[cfg(feature = "_engine")]
mod cache;
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
mod progress;

#[cfg(feature = "_engine")]
pub use self::object::ObjectFile;
#[cfg(feature = "_llvm")]
pub use crate::backend::llvm::LlvmIr;
pub use crate::diagnostic::UndefinedSymbol;
pub use crate::lower::{ImageDescription, LaunchDescription};
pub use archive::{ArchiveError, ArchiveInput, archive_bytes, write_archive};
#[cfg(feature = "_engine")]
pub use cache::{Artifact, Cache, CacheKey, CacheKeyBuilder, NotCacheable, build_id};
#[cfg(feature = "_engine")]
pub use error::EmitError;
pub use inspect::{Binary, BinaryFunction, BinaryModule, InspectError, defines_symbol, inspect, inspect_bytes};
#[cfg(feature = "_engine")]
pub use library::LibraryBuilder;
pub use link::{LinkError, Linker};
pub use output::{NoUnfinishedOutputs, remove_unfinished_outputs};
pub use pack::{NodeId, PackBuilder, PackError, Payload};
pub use progress::{Progress, Step};
pub use target_lexicon::Triple;
