//! Generates checked TVM FFI wrappers for kernels.

pub mod backend;
#[cfg(feature = "cranelift")]
pub mod embed;
pub mod engine;
pub mod ir;
pub mod lower;
pub mod spec;

pub use engine::EngineError;
#[cfg(feature = "cranelift")]
pub use engine::{Engine, EngineBuilder};
pub use lower::{Body, Expr, Kernel, KernelReturn, LowerError, Operand, TensorRef};
pub use spec::{Device, Dim, Layout, Param, ParamType, ScalarType, Signature, SignatureError, TensorType};
pub use tvm_ffi_runtime as runtime;
pub use tvm_ffi_runtime::abi::{DLDataType, DLDeviceType};

/// The README's examples, run as doc tests.
#[cfg(all(doctest, feature = "cranelift"))]
#[doc = include_str!("../README.md")]
struct Readme;
