//! Runs code in this process: resolves symbols, loads machine code, and keeps it for as long as it is needed.
//!
//! With a backend: `Engine` compiles signatures and kernels, from any thread. The `Jit` below it loads verified modules of IR; it and what is
//! made for it are [outside of semver](crate#stability).

mod code;
#[cfg(feature = "_engine")]
mod compile;
#[cfg(feature = "_engine")]
mod compiled;
#[cfg(feature = "cranelift")]
mod cranelift_jit;
#[cfg(feature = "_engine")]
mod debug;
mod error;
#[cfg(feature = "_engine")]
mod helpers;
#[cfg(feature = "_engine")]
mod jit;
#[cfg(all(feature = "_engine", not(feature = "external-runtime")))]
mod jit_module;
#[cfg(feature = "_llvm")]
mod llvm_jit;
#[cfg(feature = "cranelift")]
mod memory;
#[cfg(all(feature = "_engine", feature = "interpreter"))]
mod native_host;
#[cfg(feature = "_engine")]
mod natives;
#[cfg(feature = "_engine")]
mod objects;
#[cfg(feature = "_llvm")]
mod orc;
#[cfg(feature = "_engine")]
mod pool;
mod symbols;

#[cfg(all(test, feature = "_llvm"))]
mod llvm_tests;
#[cfg(all(test, feature = "cranelift"))]
mod tests;

pub use code::{Code, KeepAlive};
#[cfg(feature = "_engine")]
pub(crate) use code::{Memory, Symbols};
#[cfg(feature = "_engine")]
pub use compile::{Engine, EngineBuilder};
#[cfg(feature = "_engine")]
pub use debug::Perf;
pub use error::EngineError;
#[cfg(feature = "_engine")]
pub(crate) use helpers::helpers_of_process;
#[cfg(feature = "_engine")]
pub use jit::{Jit, JitBuilder, LoadOptions};
#[cfg(all(feature = "_engine", not(feature = "external-runtime")))]
pub(crate) use jit_module::{ModuleFunction, module as module_of_code};
#[cfg(feature = "_llvm")]
pub(crate) use llvm_jit::load_object;
#[cfg(all(feature = "_engine", feature = "interpreter"))]
pub use native_host::NativeHost;
#[cfg(feature = "cranelift")]
pub(crate) use pool::Pool;
pub use symbols::SymbolResolver;
#[cfg(all(feature = "_engine", windows))]
pub(crate) use symbols::of_kernel32;
