//! The table of global functions, and those of upstream's that are built in.
//! Header sections: `TVMFFIFunctionGetGlobal`, `...SetGlobal`, `...SetGlobalFromMethodInfo`.

mod builtins;
mod globals;
mod table;

pub(crate) use builtins::builtins;
pub(crate) use globals::{Globals, with_args};
pub use table::{get_global, list_global_names, remove_global, set_global, set_global_with_metadata};
