//! Wraps a compiler's kernels into fast functions of the TVM FFI stable C ABI that check their arguments.
//!
//! Give the library a [`Signature`] and a [`Kernel`], which is named or has a body that you build. It lowers them to a
//! wrapper
//!
//! ```c
//! int32_t __tvm_ffi_<name>(void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
//! ```
//!
//! that checks the arguments, unpacks tensors, calls the kernel, and passes return codes on. Its errors say what was
//! expected and what was passed. An [`Engine`] compiles the wrapper and runs it in this process with the bundled
//! [runtime].
//!
//! ```text
//! spec ──► lower ──► ir ◄── backend (cranelift | llvm) ◄── engine   runs code in this process
//!                                                      ◄── embed    adds wrappers to your own module
//!                                                      ◄── artifact puts them into objects and libraries
//! runtime: the TVM FFI C API in Rust; everything else uses runtime::abi
//! ```
//!
//! | to | see |
//! | --- | --- |
//! | state a function's interface | [`Signature`] |
//! | name or define the kernel | [`Kernel`], [`Body`] |
//! | compile it and call it | [`Engine`], [`runtime::Function`] |
//! | choose among variants of a function by its arguments | [`Dispatch`] |
//! | make variants when they are first needed | [`dispatch::DispatchTable`] |
//! | add it to your own module | [`embed`] |
//! | put it into an object file or a library, with modules of other kinds | [`artifact`] |
//! | load libraries | [`runtime::Module`] |
//! | use the crates whose types are in the API | [`crates`] |
//! | look inside | [`explain`](mod@explain) |
//! | pass errors on as structured values | [`diagnostic`] |
//!
#![cfg_attr(feature = "cranelift", doc = "```")]
#![cfg_attr(not(feature = "cranelift"), doc = "```text")]
//! use tvm_ffi_codegen::{DLDataType, Engine, Kernel, Signature, TensorType, runtime::Tensor};
//!
//! let scale = Signature::builder("scale")
//!     .param("x", TensorType::new(["n"], DLDataType::FLOAT64))
//!     .param("factor", tvm_ffi_codegen::ScalarType::Float64)
//!     .build()?;
//! let body = Kernel::body(|b| {
//!     let x = b.tensor("x");
//!     b.for_range(0, b.dim("n"), |i| x.store([i], x.load([i]) * b.arg("factor")));
//! });
//! // SAFETY: the body stays within `0..n`, the shape of `x`.
//! let scale = unsafe { Engine::new()?.compile(&scale, &body)? };
//!
//! let x = Tensor::from_slice(&[1.0f64, 2.0], &[2])?;
//! scale.call((&x, 3))?;
//! assert_eq!(x.to_vec::<f64>()?, [3.0, 6.0]);
//!
//! let error = scale.call((&x, "three")).unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "TypeError: Mismatched type of factor on argument #1 when calling: \
//!      `scale(x: Tensor([n], float64), factor: float64)`, expected float64, got str"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [The contract](https://github.com/tvm-ffi-codegen/tvm-ffi-codegen/blob/main/docs/reference/contract.md)
//! (`docs/reference/contract.md`) defines what a wrapper guarantees: it checks all that the signature states before the
//! kernel runs. C13 lists the wrapper's assumptions. No panic leaves the library. For libraries, from objects to
//! loading, see [the book](https://github.com/tvm-ffi-codegen/tvm-ffi-codegen/blob/main/docs/howto/libraries.md)
//! (`docs/howto/libraries.md`).
//!
//! # Stability
//!
//! Versions follow [semantic versioning](https://semver.org), which covers everything on these pages. Enums and structs
//! that may grow are `#[non_exhaustive]`: a `match` needs a wildcard arm, and you create a struct with its constructor.
//!
//! The feature `unstable` adds items for backends and experts. They may change in any release:
//!
//! | item | use |
//! | --- | --- |
//! | `ir` | the IR itself, with the maps of the crate `cranelift-entity`. Its enums are exhaustive, so an incomplete backend doesn't compile |
//! | `lower` | `Recipe`, and the runtime helpers with their symbols |
//! | `backend` | each backend's compiler, options and results, with types of Cranelift and inkwell |
//! | `engine::Jit` with its builder and options, `Engine::jit`, `Engine::load` | machine code for IR from another source |
//!
//! Semver covers neither texts of errors, `Debug` and `explain`, which are for people, nor symbols that begin with
//! `__tvm_ffi_codegen_` or that objects don't export. A *wrapper's* messages are a part of the contract.
//!
//! Types of other crates appear in the covered API only if you need these crates anyway: `target-lexicon`
//! ([`Triple`](artifact::Triple)) and, in [`embed`], Cranelift and inkwell for your own modules. [`crates`]
//! re-exports them, so your compiler can name them through this crate and have the same versions. A new incompatible
//! version of one of these is a new incompatible version of this crate.
//!
//! Cranelift releases an incompatible version each month. A release of this crate uses one of them, the newest at its
//! time; it never supports two. A release that moves to another version of Cranelift or inkwell has no other
//! incompatible changes, so your compiler can either follow immediately or stay on the previous release.

// Without a backend, the links to the engine don't resolve and `backend` has no items.
#![cfg_attr(not(feature = "cranelift"), allow(rustdoc::broken_intra_doc_links))]
// The unstable API uses code that is unused without it.
#![cfg_attr(not(feature = "unstable"), allow(dead_code, unused_imports))]

pub mod artifact;
#[cfg(feature = "unstable")]
pub mod backend;
#[cfg(not(feature = "unstable"))]
mod backend;
pub mod crates;
mod diagnosis;
pub mod diagnostic;
pub mod dispatch;
#[cfg(feature = "_engine")]
pub mod embed;
pub mod engine;
#[cfg(feature = "_engine")]
pub mod explain;
mod globals;
mod host;
mod host_program;
pub mod image;
#[cfg(feature = "unstable")]
pub mod ir;
#[cfg(not(feature = "unstable"))]
mod ir;
mod launch_hooks;
#[cfg(feature = "unstable")]
pub mod lower;
#[cfg(not(feature = "unstable"))]
mod lower;
mod names;
mod object_names;
mod object_symbols;
#[cfg(all(test, feature = "_engine"))]
mod op_tests;
#[cfg(feature = "cranelift")]
mod parallel;
mod parallel_for;
pub mod spec;
mod variants;

pub use backend::CodegenError;
#[cfg(feature = "_engine")]
pub use backend::{Backend, OptLevel};
pub use engine::EngineError;
#[cfg(feature = "_engine")]
pub use engine::{Engine, EngineBuilder, Perf};
pub use globals::{register_globals, set_launch_hook};
pub use host::HostTextError;
pub use host_program::HostProgram;
pub use lower::{
    ArgProblem, Body, BodyError, CStruct, CType, Call, CallArg, CallArgs, CallResult, Callee, Caught, Convention,
    ConventionProblem, DTypeValue, DeviceValue, Expr, GlobalProblem, ImageName, Kernel, KernelParam, KernelReturn,
    LaunchProblem, LaunchValue, LowerError, MatchKey, MatchPattern, MatchRow, MatchValue, Operand, Owned, ParamPart,
    ParamRef, ParamSource, PrototypeProblem, ReturnProblem, TensorFact, TensorMapProblem, TensorRef, ValueKind,
    Variable, c_header, c_prototype, metadata, type_schema,
};
pub use names::UnknownName;
pub use spec::{
    CompareOp, Constraint, DType, DTypePolicy, DefaultValue, Device, DeviceId, Dim, Layout, Param, ParamType,
    ParseError, ScalarType, Signature, SignatureBuilder, SignatureError, SyntaxError, TensorShape, TensorType, dim,
};
pub use tvm_ffi_runtime as runtime;
pub use tvm_ffi_runtime::abi::{DLDataType, DLDeviceType};
pub use variants::Dispatch;

/// The README's examples, run as doc tests.
#[cfg(all(doctest, feature = "cranelift"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// The examples of `docs/howto/bodies.md`, run as doc tests.
#[cfg(all(doctest, feature = "cranelift"))]
#[doc = include_str!("../docs/howto/bodies.md")]
struct Bodies;

/// The examples of `docs/howto/own-module.md`, run as doc tests.
#[cfg(all(doctest, feature = "cranelift"))]
#[doc = include_str!("../docs/howto/own-module.md")]
struct OwnModule;

/// The examples of `docs/howto/objects.md`, run as doc tests.
#[cfg(all(doctest, feature = "cranelift"))]
#[doc = include_str!("../docs/howto/objects.md")]
struct Objects;

/// The examples of `docs/howto/calling-out.md`, run as doc tests.
#[cfg(all(doctest, feature = "cranelift"))]
#[doc = include_str!("../docs/howto/calling-out.md")]
struct CallingOut;

/// The examples of `docs/howto/dispatch.md`, run as doc tests.
#[cfg(all(doctest, feature = "cranelift"))]
#[doc = include_str!("../docs/howto/dispatch.md")]
struct DispatchHowTo;

/// The examples of `docs/howto/libraries.md`, run as doc tests.
#[cfg(all(doctest, feature = "cranelift"))]
#[doc = include_str!("../docs/howto/libraries.md")]
struct Libraries;

/// The examples of `docs/howto/debugging.md`, run as doc tests.
#[cfg(all(doctest, feature = "cranelift"))]
#[doc = include_str!("../docs/howto/debugging.md")]
struct Debugging;

/// The examples of `docs/reference/signatures.md`, run as doc tests. They need no backend.
#[cfg(doctest)]
#[doc = include_str!("../docs/reference/signatures.md")]
struct Signatures;

/// The examples of `docs/howto/runtime.md`, run as doc tests. They need no backend.
#[cfg(doctest)]
#[doc = include_str!("../docs/howto/runtime.md")]
struct RuntimeHowTo;
