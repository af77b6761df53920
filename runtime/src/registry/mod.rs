//! The table of global functions, and the built-in functions that upstream also has.
//! `table` has the table, using `published`, a map that readers use without a lock. `lookup` is the interface for safe
//! code, and `guard` replaces the functions that safe code must not call. `globals` collects the built-in functions,
//! and `signature` has their signatures. `external` replaces this file for an external runtime.
//! Header sections: `TVMFFIFunctionGetGlobal`, `...SetGlobal`, `...SetGlobalFromMethodInfo`.

mod builtins;
mod globals;
mod guard;
mod lookup;
mod published;
mod signature;
mod table;

pub(crate) use builtins::builtins;
pub(crate) use globals::{Globals, built_in, with_args};
pub(crate) use guard::LOAD_FROM_FILE;
pub(crate) use guard::{FILE_LOADER, loads_code};
pub use lookup::{
    get_global, get_global_unchecked, list_global_names, remove_global, set_global, set_global_with_metadata,
};
pub(crate) use signature::metadata_of;
pub(crate) use table::{TAKEN_BY_DEFINITION, fill, find, register};
use table::{names, remove};
