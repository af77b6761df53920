//! The modules that are embedded in a library: loads each with its loader, then adds the imports.

use std::sync::Arc;

use super::super::load::load_from_bytes;
use super::super::object::Module;
use super::kind::NewModule;
use super::symbols::{Address, SymbolLookup};
use crate::abi::symbol::LIBRARY_BIN;
use crate::error::{Result, runtime_error, value_error};
use crate::library_bin::{LibraryBin, Node};
use crate::string::Bytes;

/// Loads the tree at `start` and returns its root. `library` is the module for the library's own node in the tree.
pub(super) fn load(start: Address, symbols: &Arc<dyn SymbolLookup>, library: &NewModule) -> Result<Module> {
    // SAFETY: by the header, the symbol is a blob that begins with its length. `symbols` keeps the library open.
    let bin = unsafe { LibraryBin::from_ptr(start.as_ptr()) };
    let bin = bin.map_err(|error| value_error(&format!("{LIBRARY_BIN} is broken: {error}")))?;
    if bin.nodes().contains(&Node::Library) {
        // First, so loaders can use functions that the library has registered.
        library.enter();
    }
    let module = |node: &Node<'_>| match *node {
        Node::Library => Ok(library.module.clone()),
        Node::Module { kind, payload } => {
            // SAFETY: the payload lies in the library, which `symbols` keeps open.
            load_from_bytes(kind, unsafe { Bytes::from_view(payload, symbols.clone()) })
        }
    };
    let modules = bin.nodes().iter().map(module).collect::<Result<Vec<Module>>>()?;
    Module::import_tree(&modules, |node| bin.children(node))?;
    modules.into_iter().next().ok_or_else(|| runtime_error("library_bin has no nodes"))
}
