//! Lowering: turns a signature and a kernel into IR. Every rule of the TVM FFI ABI is implemented here, once.
//!
//! A wrapper consists mainly of its *fast path*: few branches that accept the arguments that callers nearly always
//! pass. If a condition fails, the *slow path* passes the arguments and the signature's *descriptor* to the runtime
//! helper `bind`. It performs the exact checks, in the contract's order (`docs/reference/contract.md`). It raises the
//! error of the first check that fails, or creates arguments that the fast path accepts. With these the wrapper starts
//! again.
//!
//! The modules are layers: each may import only the modules above it in `src/layers.txt`.
//! `docs/internals/architecture.md` describes them, and `docs/internals/worked-example.md` follows one signature.
//!
//! For backends and experts: items that the crate root doesn't re-export are [outside of semver](crate#stability).

mod abi;
mod args;
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
mod helper_set;
mod host_text;
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
mod problem;
mod protocol;
mod prototype;
mod recipe;
mod symbol_call;
mod text_of;
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
    Body, Call, CallArg, CallArgs, CallResult, Callee, Caught, DTypeValue, DeviceValue, Expr, LaunchValue, MatchKey,
    MatchPattern, MatchRow, MatchValue, Operand, Owned, ParamRef, TensorFact, TensorRef, ValueKind, Variable,
};
pub use capi::{C_FUNCTIONS, CFunction, Importer};
pub use convention::c_type::{CStruct, CType};
pub use convention::param::{KernelParam, ParamPart, ParamSource};
pub use convention::{Convention, KernelReturn};
pub(crate) use device_api::LAUNCH_HOOKS;
pub use device_api::LAUNCH_SYMBOLS;
#[cfg(feature = "_engine")]
pub(crate) use device_api::is_state_of_launches;
pub use error::{BodyError, LowerError};
pub(crate) use error::{diagnostic_of, lines};
#[cfg(feature = "_engine")]
pub(crate) use helper_set::HelperSet;
pub(crate) use host_text::Source as HostSource;
#[cfg(feature = "_engine")]
pub(crate) use identity::NoIdentity;
pub use kernel::Kernel;
pub(crate) use launch::PARALLEL_FOR;
pub use launch_description::{ImageDescription, LaunchDescription};
pub(crate) use library::is_symbol_prefix;
#[cfg(all(feature = "_engine", not(feature = "external-runtime")))]
pub(crate) use metadata::metadata_with;
pub use metadata::{metadata, type_schema};
pub use module::RuntimeHelpers;
#[cfg(feature = "_engine")]
pub(crate) use native::{NativeCode, is_archive};
pub use problem::{
    ArgProblem, ConventionProblem, GlobalProblem, ImageName, LaunchProblem, PrototypeProblem, ReturnProblem,
    TensorMapProblem,
};
pub use protocol::Capabilities;
pub use protocol::helpers::{BIND_SYMBOL, REPORT_SYMBOL, TAKE_RESULT_SYMBOL};
pub use prototype::{c_header, c_prototype, flat_signature};
pub use recipe::{Lowered, LoweredFunction, Purpose, Recipe, RecipeFunction, callers, launch_sequence, lower};
pub(crate) use text_of::text_of;
