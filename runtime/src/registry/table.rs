//! The table of global functions.
//! The built-in ones, which the crate's root hands down, are registered when the table is first used.
//! Header sections: `TVMFFIFunctionGetGlobal`, `...SetGlobal`, `...SetGlobalFromMethodInfo`.

use std::sync::OnceLock;

use super::globals::Globals;
use super::published::Published;
use super::signature;
use crate::error::{Result, runtime_error};
use crate::function::Function;
use crate::process;
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

fn table() -> &'static Published<Entry> {
    static TABLE: OnceLock<Published<Entry>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let table = Published::new();
        let mut globals = Globals::default();
        crate::BUILTIN_FUNCTIONS.iter().for_each(|register| register(&mut globals));
        for (name, function) in globals.0 {
            // One that comes twice would be a mistake of this crate; the last one stays.
            let _first = table.insert(name.as_bytes(), Entry { function, metadata: Metadata::BuiltIn(name) }, true);
        }
        table
    })
}

/// The global function of that name, which need not be UTF-8. One that loads code is among them: the caller answers for its use.
pub(crate) fn find(name: &[u8]) -> Option<Function> {
    table().read(name, |entry| entry.function.clone())
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
    // What is left over is dropped when the table is free again: a destructor may use it, and so may the allocator that an error comes from.
    match table().insert(name, entry, allow_override) {
        Ok(_old) => Ok(()),
        Err(_entry) => {
            let name = String::from_utf8_lossy(name);
            let taken = format!("Global Function `{name}` is already registered{causes}");
            Err(runtime_error(&process::registered_twice(taken)))
        }
    }
}

/// As [`remove_global`](super::remove_global), with a name that need not be UTF-8.
pub(super) fn remove(name: &[u8]) -> bool {
    table().remove(name).is_some()
}

/// The names of all global functions, sorted.
pub(super) fn names() -> Vec<Vec<u8>> {
    table().names()
}

/// The metadata of a global function.
pub(super) fn metadata(name: &[u8]) -> Option<Str> {
    let (text, built_in) = table().read(name, |entry| match &entry.metadata {
        Metadata::Text(text) => (Some(text.clone()), ""),
        Metadata::BuiltIn(name) => (None, *name),
    })?;
    Some(text.unwrap_or_else(|| Str::new(&signature::metadata(built_in))))
}
