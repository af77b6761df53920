//! Runs code in this process: resolves symbols, loads machine code, and keeps it for as long as it is needed.
//!
//! A [`Jit`] is built once and loads any number of modules, from any thread:
//!
//! ```
//! # use tvm_ffi_codegen::{engine::Jit, ir::*};
//! # let mut module = Module::new();
//! # let f = module.declare("forty_two", FuncSig::new([], Some(Type::I32)), Linkage::Export);
//! # let mut b = FunctionBuilder::new(&mut module, f);
//! # let v = b.iconst(Type::I32, 42);
//! # b.ret(Some(v));
//! # b.finish();
//! # let module = verify(module).unwrap();
//! let jit = Jit::builder().build()?;
//! let code = jit.load(&module)?;
//! let address = code.function("forty_two").unwrap();
//! // SAFETY: the function has this signature, and `code` outlives the call.
//! let forty_two: extern "C" fn() -> i32 = unsafe { std::mem::transmute(address) };
//! assert_eq!(forty_two(), 42);
//! # Ok::<(), tvm_ffi_codegen::engine::EngineError>(())
//! ```

mod code;
#[cfg(feature = "_engine")]
mod compile;
#[cfg(feature = "cranelift")]
mod cranelift_jit;
mod error;
#[cfg(feature = "_engine")]
mod jit;
#[cfg(feature = "_llvm")]
mod llvm_jit;
#[cfg(feature = "cranelift")]
mod memory;
#[cfg(feature = "_engine")]
mod native_host;
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
pub use compile::{Engine, EngineBuilder};
pub use error::EngineError;
#[cfg(feature = "_engine")]
pub use jit::{Jit, JitBuilder, LoadOptions};
#[cfg(feature = "_engine")]
pub use native_host::NativeHost;
pub use symbols::SymbolResolver;
