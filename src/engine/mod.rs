//! Runs code in this process: resolves symbols, loads machine code, and keeps it for as long as it is needed.
//!
//! With feature `cranelift`: `Jit` is built once and loads any number of modules, from any thread; `Engine` compiles
//! signatures and kernels with one.

mod code;
#[cfg(feature = "cranelift")]
mod compile;
mod error;
#[cfg(feature = "cranelift")]
mod jit;
#[cfg(feature = "cranelift")]
mod memory;
#[cfg(feature = "cranelift")]
mod native_host;
mod symbols;

#[cfg(all(test, feature = "cranelift"))]
mod tests;

pub use code::{Code, KeepAlive};
#[cfg(feature = "cranelift")]
pub use compile::{Engine, EngineBuilder};
pub use error::EngineError;
#[cfg(feature = "cranelift")]
pub use jit::{Jit, JitBuilder, LoadOptions};
#[cfg(feature = "cranelift")]
pub use native_host::NativeHost;
pub use symbols::SymbolResolver;
