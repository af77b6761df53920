//! Generates checked TVM FFI wrappers for kernels.

#[cfg(any(
    all(feature = "llvm19-1", any(feature = "llvm20-1", feature = "llvm21-1", feature = "llvm22-1")),
    all(feature = "llvm20-1", any(feature = "llvm21-1", feature = "llvm22-1")),
    all(feature = "llvm21-1", feature = "llvm22-1"),
))]
compile_error!("one LLVM version at a time: enable only one of the features llvm19-1, llvm20-1, llvm21-1 and llvm22-1");

pub mod backend;
#[cfg(feature = "_engine")]
pub mod embed;
pub mod engine;
#[cfg(feature = "_engine")]
pub mod explain;
pub mod ir;
pub mod lower;
pub mod spec;

#[cfg(feature = "_engine")]
pub use backend::{Backend, OptLevel};
pub use engine::EngineError;
#[cfg(feature = "_engine")]
pub use engine::{Engine, EngineBuilder};
pub use lower::{Body, Expr, Kernel, KernelReturn, LowerError, Operand, TensorRef};
pub use spec::{Device, Dim, Layout, Param, ParamType, ScalarType, Signature, SignatureError, TensorType};
pub use tvm_ffi_runtime as runtime;
pub use tvm_ffi_runtime::abi::{DLDataType, DLDeviceType};

/// The README's examples, run as doc tests.
#[cfg(all(doctest, feature = "cranelift"))]
#[doc = include_str!("../README.md")]
struct Readme;
