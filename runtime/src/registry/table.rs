//! The table of global functions.
//! The built-in ones, which the crate's root hands down, are registered when the table is first used.
//! Header sections: `TVMFFIFunctionGetGlobal`, `...SetGlobal`, `...SetGlobalFromMethodInfo`.

use std::sync::OnceLock;

use super::globals::Globals;
use super::guard::{loads_code, stand_in};
use super::published::Published;
use crate::error::{Result, runtime_error};
use crate::function::Function;
use crate::string::Str;

struct Entry {
    function: Function,
    metadata: Str,
}

fn table() -> &'static Published<Entry> {
    static TABLE: OnceLock<Published<Entry>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let table = Published::new();
        let mut globals = Globals::default();
        crate::BUILTIN_FUNCTIONS.iter().for_each(|register| register(&mut globals));
        for (name, function) in globals.0 {
            // One that comes twice would be a mistake of this crate; the last one stays.
            let _first = table.insert(name.as_bytes(), Entry { function, metadata: Str::new("") }, true);
        }
        table
    })
}

/// The global function called `name`.
///
/// Safe code may call any function that it gets here: registering a function states that it may be called with any arguments, as
/// [`Function::from_extern_c`] does for C code. What would load code from a file, `ffi.ModuleLoadFromFile` and
/// `ffi.Module.load_from_file.*`, can't promise that; in its place stands a function that raises a `RuntimeError`.
pub fn get_global(name: &str) -> Option<Function> {
    // SAFETY: a function that loads code is not handed out.
    let function = unsafe { get_global_unchecked(name) }?;
    Some(if loads_code(name.as_bytes()) { stand_in(name) } else { function })
}

/// The global function called `name`, one that loads code too.
///
/// # Safety
/// A function that loads code from files, `ffi.ModuleLoadFromFile` or `ffi.Module.load_from_file.*`, may be called with such files only
/// as [`Module::load_from_file`](crate::Module::load_from_file) asks for.
pub unsafe fn get_global_unchecked(name: &str) -> Option<Function> {
    find(name.as_bytes())
}

/// The global function of that name, which need not be UTF-8. One that loads code is among them: the caller answers for its use.
pub(crate) fn find(name: &[u8]) -> Option<Function> {
    table().read(name, |entry| entry.function.clone())
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
/// As [`set_global`].
pub fn set_global_with_metadata(name: &str, function: Function, metadata: Str, allow_override: bool) -> Result<()> {
    register(name.as_bytes(), function, metadata, allow_override)
}

/// As [`set_global_with_metadata`], with a name that need not be UTF-8.
pub(crate) fn register(name: &[u8], function: Function, metadata: Str, allow_override: bool) -> Result<()> {
    // What is left over is dropped when the table is free again: a destructor may use it, and so may the allocator that an error comes from.
    match table().insert(name, Entry { function, metadata }, allow_override) {
        Ok(_old) => Ok(()),
        Err(_entry) => {
            let name = String::from_utf8_lossy(name);
            Err(runtime_error(&format!("Global Function `{name}` is already registered")))
        }
    }
}

/// Removes a global function, and says whether it was there.
pub fn remove_global(name: &str) -> bool {
    remove(name.as_bytes())
}

/// As [`remove_global`], with a name that need not be UTF-8.
pub(super) fn remove(name: &[u8]) -> bool {
    table().remove(name).is_some()
}

/// The names of all global functions, sorted. C code may register names that are not UTF-8, which are left out.
pub fn list_global_names() -> Vec<String> {
    names().into_iter().filter_map(|name| String::from_utf8(name).ok()).collect()
}

/// The names of all global functions, sorted.
pub(super) fn names() -> Vec<Vec<u8>> {
    table().names()
}

/// The metadata of a global function.
pub(super) fn metadata(name: &[u8]) -> Option<Str> {
    table().read(name, |entry| entry.metadata.clone())
}
