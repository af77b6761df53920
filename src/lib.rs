//! Makes checked, fast functions of the TVM FFI stable C ABI from a compiler's kernels.
//!
//! A compiler states a [`Signature`] and names a [`Kernel`], or builds its body. The library lowers the two to a wrapper
//!
//! ```c
//! int32_t __tvm_ffi_<name>(void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
//! ```
//!
//! that checks the arguments, takes tensors apart, calls the kernel, raises errors that tell what was expected and what
//! came, and passes return codes on. An [`Engine`] compiles it and runs it in this process, on the [runtime] that is bundled.
//!
//! ```text
//! spec ──► lower ──► ir ◄── backend (cranelift | llvm) ◄── engine   runs code in this process
//!                                                      ◄── embed    adds wrappers to a module of the caller's
//!                                                      ◄── artifact puts them into objects and libraries
//! runtime: the TVM FFI C API in Rust; runtime::abi is the ground that all stand on
//! ```
//!
//! | to | see |
//! | --- | --- |
//! | state a function's interface | [`Signature`] |
//! | name or build what it does | [`Kernel`], [`Body`] |
//! | compile it and call it | [`Engine`], [`runtime::Function`] |
//! | add it to a module of one's own | [`embed`] |
//! | put it into an object file or a library, with modules of other kinds | [`artifact`] |
//! | load libraries | [`runtime::Module`] |
//! | name the crates whose types are taken | [`crates`] |
//! | look inside | [`explain`](mod@explain), [`ir`] |
//! | hand errors on as values | [`diagnostic`] |
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
//! What a wrapper promises is in [the contract](https://docs.rs/crate/tvm-ffi-codegen/latest/source/docs/contract.md) (`docs/contract.md`): it never
//! crashes on bad input, whatever is passed. No panic leaves the library. All about libraries, from objects to loading and the command line, is in
//! [artifacts](https://docs.rs/crate/tvm-ffi-codegen/latest/source/docs/artifacts.md) (`docs/artifacts.md`).
//!
//! # Stability
//!
//! Versions follow [semantic versioning](https://semver.org). Covered are this page's re-exports, [`spec`], [`artifact`], [`embed`],
//! [`explain`](mod@explain), [`diagnostic`], [`runtime`], the errors of backends, and of [`engine`] the engine itself with its errors, [`Code`](engine::Code) and
//! [`KeepAlive`](engine::KeepAlive). Enums and structs that may grow are `#[non_exhaustive]`: a `match` has a last arm, and a struct is made by
//! its constructor.
//!
//! Outside of semver, and changed in any release, is what backends and experts work with:
//!
//! | item | use |
//! | --- | --- |
//! | [`ir`] | the IR itself, with the maps of the crate `cranelift-entity`. Its enums are exhaustive, so that a backend that is not finished doesn't compile |
//! | [`lower`], but for what this page re-exports | [`Lowering`](lower::Lowering) and [`LibraryLowering`](lower::LibraryLowering), the runtime helpers ([`helpers_module`](lower::helpers_module)), and their symbols: [`BIND_SYMBOL`](lower::BIND_SYMBOL), [`TAKE_RESULT_SYMBOL`](lower::TAKE_RESULT_SYMBOL), [`REPORT_SYMBOL`](lower::REPORT_SYMBOL) |
//! | [`backend`], but for [`Backend`], [`OptLevel`], `llvm::LlvmIr` and the backends' errors | each backend's compiler, options and results, with types of Cranelift and inkwell |
//! | [`engine::Jit`] and what is made for it: `JitBuilder`, `LoadOptions`, `SymbolResolver`, `NativeHost`; [`Engine::jit`], [`Engine::load`] | machine code of IR that somebody else has lowered |
//! | texts of errors, `Debug` and `explain` | for people. A *wrapper's* messages are a part of the contract |
//! | symbols that begin with `__tvm_ffi_codegen_`, and those that objects don't export | the wrappers' own |
//!
//! Other crates are seen in what is covered, where a caller has to have them anyway: `target-lexicon` ([`Triple`](artifact::Triple)), and in
//! [`embed`] the caller's own modules, with the types of Cranelift and inkwell. [`crates`] re-exports them, so that a compiler may name them through
//! this crate and have the same versions. A new version of one of these that is incompatible is a new, incompatible version of this crate.
//!
//! Cranelift releases an incompatible version each month. A release of this crate takes one of them, the newest at its time; two at once are not
//! supported. A release that moves to another version of Cranelift or of inkwell changes nothing else that is incompatible, so that a compiler
//! may follow at once, or stay with the release before.

// Without a backend there is no engine to link to, and `backend` has no items.
#![cfg_attr(not(feature = "cranelift"), allow(rustdoc::broken_intra_doc_links))]

pub mod artifact;
pub mod backend;
pub mod crates;
pub mod diagnostic;
#[cfg(feature = "_engine")]
pub mod embed;
pub mod engine;
#[cfg(feature = "_engine")]
pub mod explain;
pub mod image;
pub mod ir;
pub mod lower;
mod names;
mod object_symbols;
#[cfg(feature = "cranelift")]
mod parallel;
pub mod spec;

#[cfg(feature = "_engine")]
pub use backend::{Backend, OptLevel};
pub use engine::EngineError;
#[cfg(feature = "_engine")]
pub use engine::{Engine, EngineBuilder, Perf};
pub use lower::{
    Body, BodyMistake, CType, Call, CallArg, CallArgs, CallResult, Callee, Caught, Convention, Expr, Kernel,
    KernelParam, KernelReturn, LowerError, OnDevice, Operand, Owned, ParamPart, ParamRef, ParamSource, TensorRef,
    Variable, c_header, c_prototype, metadata, type_schema,
};
pub use names::UnknownName;
pub use spec::{
    CompareOp, Constraint, DType, DTypePolicy, DefaultValue, Device, DeviceId, Dim, Layout, Param, ParamType,
    ParseError, ScalarType, Signature, SignatureBuilder, SignatureError, SyntaxError, TensorShape, TensorType, dim,
};
pub use tvm_ffi_runtime as runtime;
pub use tvm_ffi_runtime::abi::{DLDataType, DLDeviceType};

/// The README's examples, run as doc tests.
#[cfg(all(doctest, feature = "cranelift"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// The examples of the guide, run as doc tests.
#[cfg(all(doctest, feature = "cranelift"))]
#[doc = include_str!("../docs/guide.md")]
struct Guide;

/// The examples of `docs/artifacts.md`, run as doc tests.
#[cfg(all(doctest, feature = "cranelift"))]
#[doc = include_str!("../docs/artifacts.md")]
struct Artifacts;

/// The examples of `docs/signatures.md`, run as doc tests. They need no backend.
#[cfg(doctest)]
#[doc = include_str!("../docs/signatures.md")]
struct Signatures;

/// The examples of `docs/rust-api.md`, run as doc tests. They need no backend.
#[cfg(doctest)]
#[doc = include_str!("../docs/rust-api.md")]
struct RustApi;
