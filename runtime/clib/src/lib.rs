//! The TVM FFI runtime in Rust as a C library.
//!
//! `cargo build --release -p tvm-ffi-runtime-c` builds `libtvm_ffi_runtime.so` and `libtvm_ffi_runtime.a` with the
//! symbols of upstream's `tvm/ffi/c_api.h` and `tvm/ffi/extra/c_env_api.h`. If your C program uses those headers, link
//! one of them instead of upstream's `libtvm_ffi`. With the static library, also link with `-rdynamic` if your program
//! loads libraries that use the runtime.

// The library exports all `no_mangle` functions of linked crates. This `use` makes the runtime a linked crate.
pub use runtime::capi;

mod at_load;
#[cfg(feature = "cxx")]
mod cxx;
