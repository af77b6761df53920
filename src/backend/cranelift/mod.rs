//! The Cranelift backend: the default one, for its compile latency.
//!
//! Work has two phases, so that an error leaves nothing half-defined in a module that the caller owns:
//!
//! 1. [`compile`] (or a reused [`Compiler`]) turns every function into machine code with relocations. It sees a
//!    target, but no `cranelift_module::Module`.
//! 2. [`CompiledModule::add_to`] checks all that can fail, and only then declares and defines;
//!    [`CompiledModule::into_object`] does so in an object file of its own.

mod codegen;
mod compile;
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
pub(crate) use compile::isa_identity;
pub use compile::{CompiledFunction, CompiledModule, Compiler, Options, compile};
pub(crate) use define::list_functions;
pub use define::{Bindings, Defined};
pub use error::Error;
pub use isa::{ByLoops, IsaOptions, host_isa, isa_for};
pub(crate) use translate::c_signature;
