//! The C symbols of `c_api.h` and `extra/c_env_api.h`.
//! Every body runs inside the guard of `boundary`: a panic or an error becomes -1 with a raised error.
//! [`symbols`] lists them all by name, for linkers that resolve names at run time.
//!
//! With the feature `hidden` no symbol is exported. With `external` none is defined here, and [`symbols`] lists those
//! of the process's runtime. The module `external` then replaces this file.
#![cfg_attr(feature = "hidden", allow(non_snake_case))]

mod call;
mod dtypes;
mod env;
mod errors;
mod modules;
mod objects;
mod table;
mod tensors;
mod types;
mod values;

pub use call::*;
pub use env::*;
pub use errors::*;
pub use modules::*;
pub use objects::*;
pub use table::SymbolAddress;
pub use tensors::*;
pub use types::*;
pub use values::*;

use std::ffi::c_void;

use crate::error::{Result, runtime_error};
use crate::process::beside::{elsewhere, two_runtimes};

macro_rules! symbol_table {
    ($($name:ident),* $(,)?) => {
        static TABLE: &[(&str, SymbolAddress)] = &[$((stringify!($name), SymbolAddress($name as *const c_void))),*];

        // The linker exports these symbols from every program and library that this crate is linked into, like
        // `__declspec(dllexport)` in C. On other systems use the linker option `-rdynamic`.
        #[cfg(all(windows, target_pointer_width = "64", not(feature = "hidden")))]
        std::arch::global_asm!(
            ".pushsection .drectve,\"yni\"",
            $(concat!(".ascii \" -export:", stringify!($name), "\""),)*
            ".popsection",
        );
    };
}
table::with_symbols!(symbol_table);

/// Every C symbol of this crate with its address.
pub fn symbols() -> &'static [(&'static str, SymbolAddress)] {
    TABLE
}

/// Fills the tables of types and global functions with the built-in ones. Without this call their first use does it,
/// which takes that use some 0.1 ms. The C libraries call it when they are loaded.
pub fn fill_tables() {
    crate::type_table::fill();
    crate::registry::fill();
}

/// Checks that [`symbols`] belong to the runtime that this crate uses. Call it before you pass the addresses to other
/// code.
///
/// # Errors
/// `RuntimeError` with advice on what to do. The C symbols of this file resolve to another runtime, because the process
/// already exported that runtime's symbols when this file was loaded. With the feature `external`, as
/// [`check_runtime`](crate::check_runtime).
pub fn check_symbols() -> Result<()> {
    let other = symbols().first().and_then(|(_, address)| elsewhere(address.as_ptr()));
    other.map_or(Ok(()), |file| Err(runtime_error(&two_runtimes(&file))))
}
