//! The global functions that load code, which safe code can't call.

use crate::error::runtime_error;
use crate::function::Function;

/// The global function that loads a file.
pub(crate) const LOAD_FROM_FILE: &str = "ffi.ModuleLoadFromFile";
/// Begins the name of the global function that loads files of a format; the extension follows.
pub(crate) const FILE_LOADER: &str = "ffi.Module.load_from_file.";

/// Whether a global function of that name loads code.
pub(crate) fn loads_code(name: &[u8]) -> bool {
    name == LOAD_FROM_FILE.as_bytes() || name.starts_with(FILE_LOADER.as_bytes())
}

/// Stands for a function that loads code: it raises an error that names the ways to call that.
pub(super) fn stand_in(name: &str) -> Function {
    let message = format!(
        "`{name}` loads code, for which only unsafe code can answer: call `Module::load_from_file`, or get the function by \
         `registry::get_global_unchecked`"
    );
    Function::from_packed(move |_| Err(runtime_error(&message)))
}
