//! Global functions by name, for safe code. The table is this crate's own, or that of an external runtime.

use super::guard::stand_in;
use crate::error::Result;
use crate::function::Function;
use crate::host::check_shared;
use crate::string::Str;

/// The global function called `name`.
///
/// Safe code may call the returned function with any arguments and on any thread. By registering a function, its author
/// states that this is sound, as [`Function::from_extern_c`] requires for C code. It isn't sound for the following
/// functions, so you get a replacement that raises a `RuntimeError`:
///
/// - functions that load code from a file: `ffi.ModuleLoadFromFile` and `ffi.Module.load_from_file.*`;
/// - functions that trust numbers in their arguments: `ffi.MakeFieldSetter` and `ffi._PyClassRegisterTypeAttrColumns`;
/// - the functions that upstream's package has for its own tests, `testing.*`, if its library with them is loaded;
/// - with the feature `external`, the runtime's own functions (`ffi.*`), except those that make or read immutable
///   values. These are `ffi.String`, `ffi.Bytes`, `ffi.Shape`, `ffi.Array*` and `ffi.Map*` without iterators and
///   `ffi.ArrayContains`, `ffi.VisitInterrupt`, and the two that return sentinels. Upstream's others read lists, dicts
///   and tables without a lock, and some end the process. Use this crate's [`List`](crate::List),
///   [`Dict`](crate::Dict), [`Module`](crate::Module) and the functions of this module instead.
pub fn get_global(name: &str) -> Option<Function> {
    // SAFETY: a function that is unsound for some calls is replaced below.
    let function = unsafe { get_global_unchecked(name) }?;
    Some(stand_in(name).unwrap_or(function))
}

/// The global function called `name`, without the replacements that [`get_global`] makes.
///
/// # Safety
/// If you call `ffi.MakeFieldSetter` or `ffi._PyClassRegisterTypeAttrColumns`, the addresses and sizes that you pass
/// must be valid. If you call a function that loads code (`ffi.ModuleLoadFromFile` or `ffi.Module.load_from_file.*`),
/// the file must satisfy the contract of [`Module::load_from_file`](crate::Module::load_from_file). If you call an
/// external runtime's own function, you must pass the arguments that it expects. No thread may change a list, dict or
/// table that it uses meanwhile.
pub unsafe fn get_global_unchecked(name: &str) -> Option<Function> {
    super::find(name.as_bytes())
}

/// Registers a global function. From then on safe code may call it with any arguments.
///
/// # Errors
/// As [`set_global_with_metadata`].
pub fn set_global(name: &str, function: Function, allow_override: bool) -> Result<()> {
    set_global_with_metadata(name, function, Str::new(""), allow_override)
}

/// Registers a global function with its metadata, a JSON string.
///
/// # Errors
/// `RuntimeError` if the name is taken and `allow_override` is false. Also if this process has another TVM FFI runtime,
/// since code that uses that runtime would not find the function.
pub fn set_global_with_metadata(name: &str, function: Function, metadata: Str, allow_override: bool) -> Result<()> {
    check_shared()?;
    super::register(name.as_bytes(), function, metadata, allow_override, "")
}

/// Removes a global function, and returns whether it existed.
pub fn remove_global(name: &str) -> bool {
    super::remove(name.as_bytes())
}

/// The names of all global functions, sorted. Names that aren't UTF-8, which C code may register, are left out.
pub fn list_global_names() -> Vec<String> {
    super::names().into_iter().filter_map(|name| String::from_utf8(name).ok()).collect()
}
