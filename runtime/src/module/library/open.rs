//! Modules of opened libraries.

use std::sync::Arc;

use super::super::object::Module;
use super::kind::library_module;
use super::symbols::SymbolLookup;
use super::{context, dynamic, embedded};
use crate::abi::symbol::LIBRARY_BIN;
use crate::error::Result;

/// Opens a shared library as a module.
pub(in crate::module) fn open(path: &str) -> Result<Module> {
    load(Arc::new(dynamic::open(path)?))
}

/// The module of a library: the root of its embedded module tree, or the library's own module if it has no tree.
pub(super) fn load(symbols: Arc<dyn SymbolLookup>) -> Result<Module> {
    context::fill_variables(&*symbols);
    let library = library_module(symbols.clone());
    match symbols.symbol(LIBRARY_BIN) {
        Some(start) => embedded::load(start, &symbols, &library),
        None => {
            library.enter();
            Ok(library.module)
        }
    }
}
