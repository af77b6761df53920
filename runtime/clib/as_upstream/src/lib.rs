//! The TVM FFI runtime in Rust as a C library with the file name of upstream's `libtvm_ffi`.
//!
//! `cargo build --release -p tvm-ffi-runtime-c-as-upstream` builds `libtvm_ffi.so`. It has upstream's SONAME, so a
//! program that was linked with upstream's library also runs with this one. Otherwise the library is the same as that
//! of `tvm-ffi-runtime-c`.

// The library exports all `no_mangle` functions of linked crates. This `use` makes the runtime a linked crate.
pub use runtime::capi;

#[path = "../../src/at_load.rs"]
mod at_load;
