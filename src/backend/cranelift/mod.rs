//! The Cranelift backend: the default one, for its compile latency.
//!
//! Compilation has two phases, so an error leaves nothing half-defined in a module that the caller owns:
//!
//! 1. [`compile`] (or a reused [`Compiler`]) turns every function into machine code with relocations. It uses a target,
//!    but no `cranelift_module::Module`.
//! 2. [`CompiledModule::add_to`] checks everything that can fail, and only then declares and defines.
//!    [`CompiledModule::into_object`] does the same in a new object file.

mod codegen;
mod compile;
mod compiled;
mod debug;
mod define;
mod error;
mod in_memory;
mod isa;
mod lines;
mod object;
mod recorder;
mod translate;
mod unwind;
mod unwind_windows;
mod worker;

#[cfg(test)]
mod tests;

pub(crate) use codegen::Cranelift;
pub use compile::{Compiler, compile};
pub use compiled::{CompiledFunction, CompiledModule, Options};
pub(crate) use define::list_functions;
pub use define::{Bindings, Defined};
pub use error::Error;
pub(crate) use isa::isa_identity;
pub use isa::{ByLoops, IsaOptions, host_isa, isa_for};
pub(crate) use translate::c_signature;
