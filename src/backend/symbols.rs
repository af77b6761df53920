//! Symbols of local functions in files.

/// Prefix of local functions' symbols in files. Upstream's `backtrace_utils.h` hides functions with this prefix, so a
/// wrapper appears as one frame in a backtrace.
const LEFT_OUT: &str = "ffi_call_";

/// The symbol of a local function in an object file, or in a module that becomes one.
pub(crate) fn local_symbol(name: &str) -> String {
    format!("{LEFT_OUT}{name}")
}

/// The name of the local function with this symbol; `None` for other symbols.
pub(crate) fn name_of_local(symbol: &str) -> Option<&str> {
    symbol.strip_prefix(LEFT_OUT)
}
