//! The table of global functions.
//! The built-in functions are registered when the table is first used. Their list comes from the crate's root.
//! Header sections: `TVMFFIFunctionGetGlobal`, `...SetGlobal`, `...SetGlobalFromMethodInfo`.

use std::sync::OnceLock;

use super::globals::Globals;
use super::published::Published;
use super::signature;
use crate::error::{Result, runtime_error};
use crate::function::Function;
use crate::process;
use crate::string::Str;

struct FunctionEntry {
    function: Function,
    metadata: Metadata,
}

/// Where the metadata of a function is.
enum Metadata {
    /// Made from the signature of the built-in function of that name.
    BuiltIn(&'static str),
    Text(Str),
}

fn table() -> &'static Published<FunctionEntry> {
    static TABLE: OnceLock<Published<FunctionEntry>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let table = Published::new();
        let mut globals = Globals::default();
        crate::handed_down::BUILTIN_FUNCTIONS.iter().for_each(|register| register(&mut globals));
        for (name, function) in globals.0 {
            // A duplicate name would be a bug in this crate. The last function stays.
            let _first =
                table.insert(name.as_bytes(), FunctionEntry { function, metadata: Metadata::BuiltIn(name) }, true);
        }
        table
    })
}

/// Fills the table with the built-in functions, unless it is filled.
pub(crate) fn fill() {
    table();
}

/// The global function of that name. The name need not be UTF-8. The function may be one that loads code, so the caller
/// is responsible for its use.
pub(crate) fn find(name: &[u8]) -> Option<Function> {
    table().read(name, |entry| entry.function.clone())
}

/// Added to the error message when a C++ definition registers a name that is taken.
pub(crate) const TAKEN_BY_DEFINITION: &str = ", possible causes:\n\
    - Two GlobalDef().def registrations for the same function \n\
    Please remove the duplicate registration.";

/// As [`set_global_with_metadata`](super::set_global_with_metadata), for a name that need not be UTF-8. `causes` is
/// added to the error message if the name is taken.
pub(crate) fn register(
    name: &[u8],
    function: Function,
    metadata: Str,
    allow_override: bool,
    causes: &str,
) -> Result<()> {
    let entry = FunctionEntry { function, metadata: Metadata::Text(metadata) };
    // The replaced or refused entry is dropped, and an error made, after the table's lock is released. A destructor may
    // use the table, and so may the allocator of the error.
    match table().insert(name, entry, allow_override) {
        Ok(_old) => Ok(()),
        Err(_entry) => {
            let name = String::from_utf8_lossy(name);
            let taken = format!("Global Function `{name}` is already registered{causes}");
            Err(runtime_error(&process::beside::registered_twice(taken)))
        }
    }
}

/// As [`remove_global`](super::remove_global), for a name that need not be UTF-8.
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
