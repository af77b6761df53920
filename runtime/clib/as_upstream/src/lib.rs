//! The TVM FFI runtime in Rust as a C library that programs find where they look for upstream's `libtvm_ffi`.
//!
//! `cargo build --release -p tvm-ffi-runtime-c-as-upstream` gives it as `libtvm_ffi.so`. Its SONAME is upstream's, so that a program which was
//! linked with upstream's library runs with this one. The library is otherwise the one of `tvm-ffi-runtime-c`.

// All `no_mangle` functions of a linked crate are exported; the use makes it one.
pub use runtime::capi;
