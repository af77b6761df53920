//! What a compiler ships: object files, for any target that a backend has; the modules that a library carries; libraries and archives of
//! them; and reading those back.
//!
//! [`LibraryBuilder`] makes an [`ObjectFile`] of signatures and kernels, [`LibraryBinBuilder`] an object with modules of other kinds. A [`Linker`] makes
//! a shared library of one or several, [`write_archive`] a static one. [`inspect()`] shows what is in such files. All of them write a file wholly or not
//! at all.
//!
//! The bundled runtime loads libraries: [`Module`](tvm_ffi_runtime::Module). From signatures to that, with the limits of each target, it is all in
//! [artifacts](https://docs.rs/crate/tvm-ffi-codegen/latest/source/docs/artifacts.md) (`docs/artifacts.md`).

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

#[cfg(feature = "_engine")]
pub use self::object::ObjectFile;
pub use archive::{ArchiveError, ArchiveInput, write_archive};
#[cfg(feature = "_engine")]
pub use error::EmitError;
pub use inspect::{Binary, BinaryFunction, BinaryModule, InspectError, defines_symbol, inspect};
#[cfg(feature = "_engine")]
pub use library::LibraryBuilder;
pub use link::{LinkError, Linker};
pub use output::{NoUnfinishedOutputs, remove_unfinished_outputs};
pub use pack::{LibraryBinBuilder, NodeId, PackError, Payload};
pub use target_lexicon::Triple;
