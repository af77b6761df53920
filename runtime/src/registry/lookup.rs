//! Global functions by name, for safe code: over this crate's own table, or over that of an external runtime.

#[cfg(feature = "external")]
use super::external as table;
use super::guard::stand_in;
#[cfg(not(feature = "external"))]
use super::table;
use crate::error::Result;
use crate::function::Function;
use crate::host::check_shared;
use crate::string::Str;

/// The global function called `name`.
///
/// Safe code may call any function that it gets here: registering a function states that it may be called with any arguments, as
/// [`Function::from_extern_c`] does for C code. What would load code from a file, `ffi.ModuleLoadFromFile` and
/// `ffi.Module.load_from_file.*`, can't promise that, nor can `ffi.MakeFieldSetter` and `ffi._PyClassRegisterTypeAttrColumns`, which trust
/// numbers that they are given; in their places stand functions that raise a `RuntimeError`.
pub fn get_global(name: &str) -> Option<Function> {
    // SAFETY: a function that loads code or trusts its arguments is not handed out.
    let function = unsafe { get_global_unchecked(name) }?;
    Some(stand_in(name).unwrap_or(function))
}

/// The global function called `name`, one that loads code or trusts its arguments too.
///
/// # Safety
/// Addresses and sizes that `ffi.MakeFieldSetter` and `ffi._PyClassRegisterTypeAttrColumns` are given must be what they are taken for.
/// A function that loads code from files, `ffi.ModuleLoadFromFile` or `ffi.Module.load_from_file.*`, may be called with such files only
/// as [`Module::load_from_file`](crate::Module::load_from_file) asks for.
pub unsafe fn get_global_unchecked(name: &str) -> Option<Function> {
    table::find(name.as_bytes())
}

/// Registers a global function, which from then on safe code may call with any arguments.
///
/// # Errors
/// `RuntimeError` when the name is taken and `allow_override` is false.
pub fn set_global(name: &str, function: Function, allow_override: bool) -> Result<()> {
    set_global_with_metadata(name, function, Str::new(""), allow_override)
}

/// Registers a global function with its metadata, a JSON text.
///
/// # Errors
/// As [`set_global`]; `RuntimeError` where another TVM FFI runtime is in this process, whose users would not find the function.
pub fn set_global_with_metadata(name: &str, function: Function, metadata: Str, allow_override: bool) -> Result<()> {
    check_shared()?;
    table::register(name.as_bytes(), function, metadata, allow_override, "")
}

/// Removes a global function, and says whether it was there.
pub fn remove_global(name: &str) -> bool {
    table::remove(name.as_bytes())
}

/// The names of all global functions, sorted. C code may register names that are not UTF-8, which are left out.
pub fn list_global_names() -> Vec<String> {
    table::names().into_iter().filter_map(|name| String::from_utf8(name).ok()).collect()
}
