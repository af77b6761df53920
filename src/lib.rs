//! Generates checked TVM FFI wrappers for kernels.

pub mod backend;
#[cfg(feature = "cranelift")]
pub mod embed;
pub mod engine;
pub mod ir;
pub mod lower;
pub mod spec;

#[cfg(any(feature = "cranelift", feature = "_llvm"))]
pub use backend::{Backend, OptLevel};
pub use engine::EngineError;
#[cfg(any(feature = "cranelift", feature = "_llvm"))]
pub use engine::{Engine, EngineBuilder};
pub use lower::{Body, Expr, Kernel, KernelReturn, LowerError, Operand, TensorRef};
pub use spec::{Device, Dim, Layout, Param, ParamType, ScalarType, Signature, SignatureError, TensorType};
pub use tvm_ffi_runtime as runtime;
pub use tvm_ffi_runtime::abi::{DLDataType, DLDeviceType};
