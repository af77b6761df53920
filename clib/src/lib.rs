//! The library as functions of TVM FFI: `tvm_ffi.load_module("libtvm_ffi_codegen.so")` in Python, and the symbols
//! `__tvm_ffi_tfc_...` in C.
//!
//! Functions take and return strings, bytes, arrays, and a few kinds of objects, such as
//! [`signature::SignatureObject`], [`kernel::KernelObject`] and [`program::ProgramObject`]. Where a function has many
//! options or results, they are JSON. Errors are of kind `tvm_ffi_codegen.<Kind>`, where the kinds are those of
//! [`codegen::diagnostic::DiagnosticKind`]. An error's extra context is a string, the JSON of
//! [`codegen::diagnostic::Diagnostic::to_json`].

mod compile;
mod dispatch;
mod error;
mod kernel;
mod library;
mod look;
mod program;
mod rearranged;
mod signature;
mod source;
mod structure;
