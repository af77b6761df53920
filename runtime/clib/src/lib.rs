//! The TVM FFI runtime in Rust as a C library.
//!
//! `cargo build --release -p tvm-ffi-runtime-c` gives `libtvm_ffi_runtime.so` and `libtvm_ffi_runtime.a` with the symbols of upstream's
//! `tvm/ffi/c_api.h` and `tvm/ffi/extra/c_env_api.h`. A C program that is written against those headers links one of them in place of
//! upstream's `libtvm_ffi`. The static one needs `-rdynamic` where the program loads libraries that use the runtime.

// All `no_mangle` functions of a linked crate are exported; the use makes it one.
pub use runtime::capi;
