//! Backends: generate machine code from the [IR](crate::ir).
//!
//! A backend turns a [`VerifiedModule`](crate::ir::VerifiedModule) into code with relocations. It knows neither
//! signatures nor the rules of the TVM FFI ABI. The IR already contains every check and message of a wrapper, so two
//! backends can't differ on them. You can also use a backend alone, to add a wrapper to your own module.
//!
//! For backends and experts: [semver](crate#stability) covers only [`Backend`], [`OptLevel`] and the backends' errors.

#[cfg(feature = "_engine")]
mod c_abi;
#[cfg(feature = "_engine")]
mod choice;
#[cfg(feature = "_engine")]
mod code;
#[cfg(feature = "_engine")]
mod codegen;
#[cfg(feature = "cranelift")]
pub mod cranelift;
#[cfg(feature = "cranelift")]
mod disassembly;
mod error;
#[cfg(feature = "_llvm")]
pub mod llvm;
mod opt_level;
#[cfg(feature = "_engine")]
mod symbols;
#[cfg(feature = "_engine")]
mod target;

#[cfg(feature = "_engine")]
pub use choice::Backend;
#[cfg(feature = "_engine")]
pub use code::Lines;
#[cfg(feature = "_engine")]
pub(crate) use codegen::{Codegen, Listing, ObjectOptions, TextLine};
pub use error::CodegenError;
#[cfg(feature = "_engine")]
pub(crate) use error::verified;
pub use opt_level::OptLevel;
#[cfg(feature = "_engine")]
pub(crate) use symbols::{local_symbol, name_of_local};
#[cfg(feature = "_llvm")]
pub(crate) use target::ON_GPU;
