//! What a compiler ships: object files, for any target that a backend has.
//!
//! [`LibraryBuilder`] makes an [`ObjectFile`] of signatures and kernels. A linker makes a shared library of one or several, or puts
//! them into a program.

mod error;
mod library;
mod object;

pub use error::EmitError;
pub use library::LibraryBuilder;
pub use object::ObjectFile;
pub use target_lexicon::Triple;
