//! The table of global functions.
//! The built-in ones, which the crate's root hands down, are registered when the table is first used.
//! Header sections: `TVMFFIFunctionGetGlobal`, `...SetGlobal`, `...SetGlobalFromMethodInfo`.

use std::collections::BTreeMap;
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::globals::Globals;
use crate::error::{Result, runtime_error};
use crate::function::Function;
use crate::string::Str;

struct Entry {
    function: Function,
    metadata: Str,
}

type Table = BTreeMap<String, Entry>;

fn table() -> &'static RwLock<Table> {
    static TABLE: OnceLock<RwLock<Table>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let entry = |(name, function): (&str, _)| (name.to_owned(), Entry { function, metadata: Str::new("") });
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
pub fn get_global(name: &str) -> Option<Function> {
    read().get(name).map(|entry| entry.function.clone())
}

/// Registers a global function.
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
    let entry = Entry { function, metadata };
    let old = {
        let mut table = write();
        if !allow_override && table.contains_key(name) {
            return Err(runtime_error(&format!("Global Function `{name}` is already registered")));
        }
        table.insert(name.to_owned(), entry)
    };
    // Dropped after the lock: a destructor may use the table.
    drop(old);
    Ok(())
}

/// Removes a global function, and says whether it was there.
pub fn remove_global(name: &str) -> bool {
    let old = write().remove(name);
    old.is_some()
}

/// The names of all global functions, sorted.
pub fn list_global_names() -> Vec<String> {
    read().keys().cloned().collect()
}

/// The metadata of a global function.
pub(super) fn metadata(name: &str) -> Option<Str> {
    read().get(name).map(|entry| entry.metadata.clone())
}
