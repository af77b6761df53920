//! Modules of opened libraries.

use std::sync::Arc;

use super::super::object::Module;
use super::kind::library_module;
use super::symbols::Symbols;
use super::{context, dynamic, embedded};
use crate::abi::symbol::LIBRARY_BIN;
use crate::error::Result;

/// The module of a shared library.
pub(in crate::module) fn open(path: &str) -> Result<Module> {
    load(Arc::new(dynamic::open(path)?))
}

/// The module of a library: the root of the tree of modules that it carries, or else the library itself.
pub(super) fn load(symbols: Arc<dyn Symbols>) -> Result<Module> {
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
