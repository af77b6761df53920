//! The C symbols of the process's runtime.

mod table;

pub use table::SymbolAddress;

use std::ffi::CString;
use std::sync::OnceLock;

use crate::error::Result;
use crate::external;
use crate::host::check_runtime;

macro_rules! names {
    ($($name:ident),* $(,)?) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}
table::with_symbols!(names);

/// Every C symbol of an external runtime with its address; empty if there is no runtime.
pub fn symbols() -> &'static [(&'static str, SymbolAddress)] {
    static TABLE: OnceLock<Vec<(&str, SymbolAddress)>> = OnceLock::new();
    if let Some(table) = TABLE.get() {
        return table;
    }
    // Look again at the next call, in case a runtime is loaded meanwhile.
    if external::api().is_err() {
        return &[];
    }
    TABLE.get_or_init(|| {
        let address = |name: &&'static str| {
            let symbol = CString::new(*name).ok()?;
            let address = external::address(&symbol).ok().filter(|address| !address.is_null())?;
            Some((*name, SymbolAddress(address)))
        };
        NAMES.iter().filter_map(address).collect()
    })
}

/// Does nothing: the process's runtime fills its own tables.
pub const fn fill_tables() {}

/// Checks that [`symbols`] are available. Call it before you pass the addresses to other code.
///
/// # Errors
/// As [`check_runtime`].
pub fn check_symbols() -> Result<()> {
    check_runtime()
}
