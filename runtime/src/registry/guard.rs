//! The global functions that load code or take addresses, which safe code can't call.

use crate::error::runtime_error;
use crate::function::Function;

/// The global function that loads a file.
pub(crate) const LOAD_FROM_FILE: &str = "ffi.ModuleLoadFromFile";
/// Begins the name of the global function that loads files of a format; the extension follows.
pub(crate) const FILE_LOADER: &str = "ffi.Module.load_from_file.";

/// Global functions that take addresses as numbers, or lay out memory of types that somebody else defines.
const TRUSTING: &[&str] = &["ffi.MakeFieldSetter", "ffi._PyClassRegisterTypeAttrColumns"];

/// Whether a global function of that name loads code.
pub(crate) fn loads_code(name: &[u8]) -> bool {
    name == LOAD_FROM_FILE.as_bytes() || name.starts_with(FILE_LOADER.as_bytes())
}

/// What stands in the place of a global function that safe code can't call: it raises an error that names the ways to call that.
pub(super) fn stand_in(name: &str) -> Option<Function> {
    let message = if loads_code(name.as_bytes()) {
        format!(
            "`{name}` loads code, for which only unsafe code can answer: call `Module::load_from_file`, or get the function by \
             `registry::get_global_unchecked`"
        )
    } else if TRUSTING.contains(&name) {
        format!(
            "`{name}` trusts its arguments, for which only unsafe code can answer: get the function by \
             `registry::get_global_unchecked`"
        )
    } else {
        return None;
    };
    Some(Function::from_packed(move |_| Err(runtime_error(&message))))
}
