//! The table of global functions, and those of upstream's that are built in.
//! `table` has it, over `published`, whose readers take no lock, or `external` where the runtime is not this crate's; `lookup` is the way of
//! safe code to either. `globals` collects built-in ones, `guard` keeps from safe code what loads code or trusts its arguments, `signature`
//! has the signatures of built-in ones.
//! Header sections: `TVMFFIFunctionGetGlobal`, `...SetGlobal`, `...SetGlobalFromMethodInfo`.

#[cfg(not(feature = "external"))]
mod builtins;
#[cfg(feature = "external")]
mod external;
#[cfg(not(feature = "external"))]
mod globals;
mod guard;
mod lookup;
#[cfg(not(feature = "external"))]
mod published;
#[cfg(not(feature = "external"))]
mod signature;
#[cfg(not(feature = "external"))]
mod table;

#[cfg(not(feature = "external"))]
pub(crate) use builtins::builtins;
#[cfg(feature = "external")]
pub(crate) use external::find;
#[cfg(not(feature = "external"))]
pub(crate) use globals::{Globals, with_args};
pub(crate) use guard::LOAD_FROM_FILE;
#[cfg(not(feature = "external"))]
pub(crate) use guard::{FILE_LOADER, loads_code};
pub use lookup::{
    get_global, get_global_unchecked, list_global_names, remove_global, set_global, set_global_with_metadata,
};
#[cfg(not(feature = "external"))]
pub(crate) use table::{TAKEN_BY_DEFINITION, find, register};
