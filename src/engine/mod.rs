//! Runs code in this process: resolves symbols, loads machine code, and keeps it alive while it is needed.
//!
//! With a backend, `Engine` compiles signatures and kernels, from any thread. The underlying `Jit` loads verified
//! modules of IR; it and its related types are [outside of semver](crate#stability).

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
#[cfg(all(feature = "cranelift", target_os = "linux"))]
mod library_image;
#[cfg(feature = "_llvm")]
mod llvm_jit;
#[cfg(feature = "_engine")]
mod loader;
#[cfg(feature = "cranelift")]
mod memory;
#[cfg(all(feature = "_engine", feature = "interpreter"))]
mod native_host;
#[cfg(feature = "_engine")]
mod natives;
#[cfg(feature = "_engine")]
mod objects;
#[cfg(feature = "_engine")]
mod options;
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
pub(crate) use code::{CodeAddresses, Memory};
#[cfg(feature = "_engine")]
pub use compile::{Engine, EngineBuilder};
#[cfg(feature = "_engine")]
pub use debug::Perf;
pub use error::{EngineError, UndefinedKernel};
#[cfg(feature = "_engine")]
pub(crate) use helpers::helpers_of_process;
#[cfg(all(feature = "_engine", feature = "unstable"))]
pub use jit::{Jit, JitBuilder, LoadOptions};
#[cfg(all(feature = "_engine", not(feature = "unstable")))]
pub(crate) use jit::{Jit, JitBuilder, LoadOptions};
#[cfg(all(feature = "_engine", not(feature = "external-runtime")))]
pub(crate) use jit_module::{ModuleFunction, module as module_of_code};
#[cfg(all(feature = "cranelift", target_os = "linux"))]
pub use library_image::LibraryImage;
#[cfg(feature = "_llvm")]
pub(crate) use llvm_jit::load_object;
#[cfg(all(feature = "_engine", feature = "interpreter", feature = "unstable"))]
pub use native_host::NativeHost;
#[cfg(feature = "_engine")]
pub use options::Builder;
#[cfg(feature = "cranelift")]
pub(crate) use pool::ObjectPool;
pub use symbols::SymbolResolver;
#[cfg(feature = "_engine")]
pub(crate) use symbols::c_functions;
