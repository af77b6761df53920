//! The symbols of a library. Header: namespace `symbol` of `tvm/ffi/extra/module.h`.

use super::any::TVMFFIVersion;

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

/// The C functions that TVM FFI got after version 0.1.0, each with the first version that has it.
const LATER: [(&str, TVMFFIVersion); 8] = [
    ("TVMFFIHandleInitOnce", version(0, 1, 5)),
    ("TVMFFIHandleDeinitOnce", version(0, 1, 5)),
    ("TVMFFITensorCreateUnsafeView", version(0, 1, 6)),
    ("TVMFFIErrorCreateWithCauseAndExtraContext", version(0, 1, 8)),
    ("TVMFFIGetCustomAllocator", version(0, 1, 13)),
    ("TVMFFISetCustomAllocator", version(0, 1, 13)),
    ("TVMFFIBigIntFromByteArray", version(0, 1, 15)),
    ("TVMFFIBigIntGetContentByteArray", version(0, 1, 15)),
];

/// The version whose C functions all later ones have.
pub const FIRST_VERSION: TVMFFIVersion = version(0, 1, 0);

const fn version(major: u32, minor: u32, patch: u32) -> TVMFFIVersion {
    TVMFFIVersion { major, minor, patch }
}

/// The min version of TVM FFI that has all of these symbols; 0.1.0 if they tell of none. `None` if no symbol is one of
/// TVM FFI's C functions, whose names begin with `TVMFFI`.
pub fn min_version<'a>(symbols: impl IntoIterator<Item = &'a str>) -> Option<TVMFFIVersion> {
    let since = |symbol: &str| LATER.iter().find(|(name, _)| *name == symbol).map(|(_, since)| *since);
    symbols
        .into_iter()
        .filter(|symbol| symbol.starts_with("TVMFFI"))
        .map(|symbol| since(symbol).unwrap_or(FIRST_VERSION))
        .max()
}
