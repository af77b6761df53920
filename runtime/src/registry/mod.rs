//! The table of global functions, and those of upstream's that are built in.
//! `table` has it, over `published`, whose readers take no lock; `globals` collects built-in ones, `guard` keeps what loads code from safe code.
//! Header sections: `TVMFFIFunctionGetGlobal`, `...SetGlobal`, `...SetGlobalFromMethodInfo`.

mod builtins;
mod globals;
mod guard;
mod published;
mod table;

pub(crate) use builtins::builtins;
pub(crate) use globals::{Globals, with_args};
pub(crate) use guard::{FILE_LOADER, LOAD_FROM_FILE, loads_code};
pub(crate) use table::{find, register};
pub use table::{
    get_global, get_global_unchecked, list_global_names, remove_global, set_global, set_global_with_metadata,
};
