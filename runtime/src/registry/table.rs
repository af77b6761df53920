//! The table of global functions.
//! The built-in ones, which the crate's root hands down, are registered when the table is first used.
//! Header sections: `TVMFFIFunctionGetGlobal`, `...SetGlobal`, `...SetGlobalFromMethodInfo`.

use std::collections::BTreeMap;
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::globals::Globals;
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

/// The global function of that name, which need not be UTF-8. One that loads code is among them: the caller answers for its use.
pub(crate) fn find(name: &[u8]) -> Option<Function> {
    read().get(name).map(|entry| entry.function.clone())
}

/// What may be wrong where a definition in C++ registers a name that is taken.
pub(crate) const TAKEN_BY_DEFINITION: &str = ", possible causes:\n\
    - Two GlobalDef().def registrations for the same function \n\
    Please remove the duplicate registration.";

/// As [`set_global_with_metadata`](super::set_global_with_metadata), with a name that need not be UTF-8, and what is added to the error of a
/// name that is taken.
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

/// As [`remove_global`](super::remove_global), with a name that need not be UTF-8.
pub(super) fn remove(name: &[u8]) -> bool {
    let old = write().remove(name);
    old.is_some()
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
