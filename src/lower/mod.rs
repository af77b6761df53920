//! Lowering: a signature and a kernel become IR. Every rule of the TVM FFI ABI is here, once.
//!
//! A wrapper is little more than its *fast path*: few branches, which accept the arguments that callers nearly always pass. Where a
//! condition doesn't hold, the *slow path* hands the arguments and the signature's *descriptor* to the runtime helper `bind`. It makes the
//! checks exactly, in the contract's order (`docs/contract.md`), and either raises the error of the first check that fails, or makes
//! arguments that the fast path accepts, with which the wrapper starts again.
//!
//! The modules are layers, each of which imports those above it in `src/layers.txt`. `docs/architecture.md` describes them, with a worked
//! example.
//!
//! For backends and experts: what the crate's root doesn't re-export of it is [outside of semver](crate#stability).

mod abi;
mod arithmetic;
mod at_exit;
mod binder;
mod body;
mod capi;
mod constants;
mod convention;
mod device_api;
mod devices;
mod encode;
mod error;
mod fast_path;
mod ffi_call;
mod globals;
mod half;
#[cfg(feature = "_engine")]
mod identity;
mod kernel;
mod launch;
mod launch_description;
mod library;
mod metadata;
mod module;
mod native;
mod once;
mod plan;
mod protocol;
mod prototype;
mod symbol_call;
mod trace;
mod unit;
mod value;
#[cfg(test)]
mod worked_example;
mod wrapper;

pub use binder::helpers_module;
#[cfg(feature = "_engine")]
pub(crate) use binder::local_helpers_module;
pub use body::{
    Body, Call, CallArg, CallArgs, CallResult, Callee, Caught, Expr, LaunchValue, OnDevice, Operand, Owned, ParamRef,
    TensorRef, Variable,
};
pub use capi::{C_FUNCTIONS, CFunction, Importer};
pub use convention::c_type::CType;
pub use convention::param::{KernelParam, ParamPart, ParamSource};
pub use convention::{Convention, KernelReturn};
#[cfg(feature = "_engine")]
pub(crate) use device_api::is_state_of_launches;
pub use error::{BodyMistake, LowerError};
#[cfg(feature = "_engine")]
pub(crate) use identity::NoIdentity;
pub use kernel::Kernel;
pub use launch_description::{ImageDescription, LaunchDescription};
pub use library::LibraryLowering;
#[cfg(all(feature = "_engine", not(feature = "external-runtime")))]
pub(crate) use metadata::metadata_with;
pub use metadata::{metadata, type_schema};
pub use module::{Lowering, RuntimeHelpers, launch_sequence, lower};
#[cfg(feature = "_engine")]
pub(crate) use native::{NativeCode, is_archive};
pub use protocol::Capabilities;
#[cfg(feature = "_engine")]
pub(crate) use protocol::helpers::HelperSet;
pub use protocol::helpers::{BIND_SYMBOL, LAUNCH_SYMBOLS, REPORT_SYMBOL, TAKE_RESULT_SYMBOL};
pub use prototype::{c_header, c_prototype, flat_signature};
