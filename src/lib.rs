//! Generates checked TVM FFI wrappers for kernels.

pub mod ir;
