//! Generates checked TVM FFI wrappers for kernels.

pub mod backend;
pub mod engine;
pub mod ir;
