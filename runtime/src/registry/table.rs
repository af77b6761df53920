//! The table of global functions.
//! The built-in ones, which the crate's root hands down, are registered when the table is first used.
//! Header sections: `TVMFFIFunctionGetGlobal`, `...SetGlobal`, `...SetGlobalFromMethodInfo`.

use std::collections::BTreeMap;
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::globals::Globals;
use super::guard::stand_in;
use super::signature;
use crate::error::{Result, runtime_error};
use crate::function::Function;
use crate::string::Str;

struct Entry {
    function: Function,
    metadata: Metadata,
}

/// Where the metadata of a function is.
enum Metadata {
    /// In the signatures of built-in functions, under the function's name.
    BuiltIn(&'static str),
    Text(Str),
}

type Table = BTreeMap<Vec<u8>, Entry>;

fn table() -> &'static RwLock<Table> {
    static TABLE: OnceLock<RwLock<Table>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let entry = |(name, function): (&'static str, _)| {
            (name.as_bytes().to_vec(), Entry { function, metadata: Metadata::BuiltIn(name) })
        };
        let mut globals = Globals::default();
        crate::BUILTIN_FUNCTIONS.iter().for_each(|register| register(&mut globals));
        RwLock::new(globals.0.into_iter().map(entry).collect())
    })
}

fn read() -> RwLockReadGuard<'static, Table> {
    table().read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Table> {
    table().write().unwrap_or_else(PoisonError::into_inner)
}

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
    find(name.as_bytes())
}

/// The global function of that name, which need not be UTF-8. One that loads code is among them: the caller answers for its use.
pub(crate) fn find(name: &[u8]) -> Option<Function> {
    read().get(name).map(|entry| entry.function.clone())
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
    register(name.as_bytes(), function, metadata, allow_override, "")
}

/// What may be wrong where a definition in C++ registers a name that is taken.
pub(crate) const TAKEN_BY_DEFINITION: &str = ", possible causes:\n\
    - Two GlobalDef().def registrations for the same function \n\
    Please remove the duplicate registration.";

/// As [`set_global_with_metadata`], with a name that need not be UTF-8, and what is added to the error of a name that is taken.
pub(crate) fn register(
    name: &[u8],
    function: Function,
    metadata: Str,
    allow_override: bool,
    causes: &str,
) -> Result<()> {
    let entry = Entry { function, metadata: Metadata::Text(metadata) };
    let left_over = {
        let mut table = write();
        match allow_override || !table.contains_key(name) {
            true => Ok(table.insert(name.to_vec(), entry)),
            false => Err(entry),
        }
    };
    // After the lock: a destructor may use the table, and so may the allocator that an error comes from.
    match left_over {
        Ok(_old) => Ok(()),
        Err(_entry) => {
            let name = String::from_utf8_lossy(name);
            Err(runtime_error(&format!("Global Function `{name}` is already registered{causes}")))
        }
    }
}

/// Removes a global function, and says whether it was there.
pub fn remove_global(name: &str) -> bool {
    remove(name.as_bytes())
}

/// As [`remove_global`], with a name that need not be UTF-8.
pub(super) fn remove(name: &[u8]) -> bool {
    let old = write().remove(name);
    old.is_some()
}

/// The names of all global functions, sorted. C code may register names that are not UTF-8, which are left out.
pub fn list_global_names() -> Vec<String> {
    names().into_iter().filter_map(|name| String::from_utf8(name).ok()).collect()
}

/// The names of all global functions, sorted.
pub(super) fn names() -> Vec<Vec<u8>> {
    read().keys().cloned().collect()
}

/// The metadata of a global function.
pub(super) fn metadata(name: &[u8]) -> Option<Str> {
    let name = match &read().get(name)?.metadata {
        Metadata::Text(text) => return Some(text.clone()),
        Metadata::BuiltIn(name) => *name,
    };
    // The lock is free again: making a string calls the allocator, which may be somebody's code.
    Some(Str::new(&signature::metadata(name)))
}
