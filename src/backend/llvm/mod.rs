//! The LLVM backend: for bodies, which it vectorises, and for callers who have LLVM modules of their own.
//!
//! A [`Compiler`] turns a verified module into an object file in memory. From LLVM it keeps only the description of the
//! target. A cargo feature selects LLVM: with `llvm22-1` and others it is linked as a shared library, with
//! `llvm22-1-loaded` it is located at run time.

#[cfg(generated_code_asan)]
mod asan;
mod codegen;
mod compile;
mod debug;
mod declare;
mod define;
mod diagnostics;
mod error;
mod facts;
mod function;
mod library;
mod lines;
#[cfg(feature = "llvm22-1-loaded")]
mod loaded;
mod module;
mod ops;
mod pipeline;
mod plain;
mod source;
mod target;
mod translate;
mod types;

pub use codegen::LlvmIr;
pub(crate) use codegen::{Llvm, ir};
pub(crate) use compile::object_of;
pub use compile::{CompiledModule, Compiler, Options, compile};
pub(crate) use declare::{c_type, declare, function_type};
pub(crate) use define::{add_to, check};
pub use error::Error;
#[cfg(feature = "llvm22-1-loaded")]
pub use error::{FileProblem, UnusableFile};
pub use library::{load, version};
pub(crate) use module::Destructors;
pub(crate) use pipeline::take_error;
pub(crate) use plain::{NotPlain, extension};
pub(crate) use target::{ENDIANNESS, features_of};
pub use target::{LlvmTarget, TargetOptions};

#[cfg(test)]
pub(crate) mod tests;
