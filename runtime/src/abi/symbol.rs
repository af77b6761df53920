//! The symbols of a library. Header: namespace `symbol` of `tvm/ffi/extra/module.h`.

/// Prefix of a function's symbol, a [`TVMFFISafeCallType`](super::TVMFFISafeCallType). The name follows.
pub const FUNCTION: &str = "__tvm_ffi_";
/// Prefix of the symbol that returns a function's metadata. The function's name follows.
pub const METADATA: &str = "__tvm_ffi__metadata_";
/// Prefix of the symbol that returns a function's doc text. The function's name follows.
pub const DOC: &str = "__tvm_ffi__doc_";
/// The modules that a library carries, in the format of `unstable::library_bin`.
pub const LIBRARY_BIN: &str = "__tvm_ffi__library_bin";
/// The variable that points at the library's module.
pub const LIBRARY_CTX: &str = "__tvm_ffi__library_ctx";
