//! The files that a compiler ships: objects for any target of a backend, the modules that a library carries, shared libraries and archives; and
//! a reader of them.
//!
//! A [`LibraryBuilder`] makes an [`ObjectFile`] from signatures and kernels. A [`LibraryBinBuilder`] makes an object with modules of other kinds. A
//! [`Linker`] makes a shared library of such objects, [`write_archive`] a static library. [`inspect()`] shows what such a file holds. Each file is
//! written wholly or not at all.
//!
//! The bundled runtime loads libraries ([`Module`](tvm_ffi_runtime::Module)). The whole way from signatures to a loaded library, with the limits of
//! each target, is in [artifacts](https://docs.rs/crate/tvm-ffi-codegen/latest/source/docs/artifacts.md) (`docs/artifacts.md`).

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
pub use archive::{ArchiveError, ArchiveInput, archive_bytes, write_archive};
#[cfg(feature = "_engine")]
pub use cache::{Cache, CacheKey, CacheKeyBuilder, NotCacheable, build_id};
#[cfg(feature = "_engine")]
pub use error::EmitError;
pub use inspect::{Binary, BinaryFunction, BinaryModule, InspectError, defines_symbol, inspect, inspect_bytes};
#[cfg(feature = "_engine")]
pub use library::LibraryBuilder;
pub use link::{LinkError, Linker, UndefinedSymbol};
pub use output::{NoUnfinishedOutputs, remove_unfinished_outputs};
pub use pack::{LibraryBinBuilder, NodeId, PackError, Payload};
pub use progress::{Progress, Step};
pub use target_lexicon::Triple;
