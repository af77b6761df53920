//! The LLVM backend: for bodies, which it vectorises, and for callers who have LLVM modules of their own.
//!
//! A [`Compiler`] turns a verified module into an object file in memory, and keeps nothing of LLVM but the description of
//! the target. Which LLVM it is, a cargo feature says: with `llvm22-1` and others it is linked as a shared library, with `llvm22-1-loaded` it is found while the
//! program runs.

mod codegen;
mod compile;
mod debug;
mod declare;
mod define;
mod error;
mod facts;
mod function;
mod library;
mod lines;
#[cfg(feature = "llvm22-1-loaded")]
mod loaded;
mod ops;
mod pipeline;
mod plain;
mod source;
mod target;
mod translate;
mod types;

pub use codegen::LlvmIr;
pub(crate) use codegen::{Llvm, ir};
pub use compile::{CompiledModule, Compiler, Options, compile};
pub(crate) use compile::{ENDIANNESS, object_of};
pub(crate) use declare::{declare, function_type};
pub(crate) use define::{Destructors, add_to, check};
pub use error::Error;
pub use library::{load, version};
pub(crate) use pipeline::take_error;
pub(crate) use plain::{NotPlain, extension};
pub use target::{Target, TargetOptions};

#[cfg(test)]
pub(crate) mod tests;
