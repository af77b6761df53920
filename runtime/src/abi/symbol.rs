//! The symbols of a library. Header: namespace `symbol` of `tvm/ffi/extra/module.h`.

/// Begins the symbol of a function, a [`TVMFFISafeCallType`](super::TVMFFISafeCallType); its name follows.
pub const FUNCTION: &str = "__tvm_ffi_";
/// Begins the symbol of what returns a function's metadata; the function's name follows.
pub const METADATA: &str = "__tvm_ffi__metadata_";
/// Begins the symbol of what returns a function's doc text; the function's name follows.
pub const DOC: &str = "__tvm_ffi__doc_";
/// The modules that a library carries, in the format of `unstable::library_bin`.
pub const LIBRARY_BIN: &str = "__tvm_ffi__library_bin";
/// The variable that points at the library's module.
pub const LIBRARY_CTX: &str = "__tvm_ffi__library_ctx";
