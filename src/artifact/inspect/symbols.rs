//! The symbols that matter to TVM FFI, by the names of `symbol::` in upstream's `extra/module.h`. Those of a system library have its prefix:
//! `__tvm_ffi_<prefix><name>`, `<prefix>__tvm_ffi__library_ctx` and so on.

use std::collections::{BTreeMap, BTreeSet};

use object::{BinaryFormat, File, Object, ObjectKind, ObjectSymbol, SectionIndex};

use tvm_ffi_runtime::abi::symbol::{DOC, FUNCTION, LIBRARY_BIN, LIBRARY_CTX, METADATA};

use super::BinaryFunction;
use super::texts::Named;

/// Where a symbol is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// In an object, whose addresses alone say nothing.
    pub(super) section: Option<SectionIndex>,
    pub(super) address: u64,
}

/// Names without what the format puts before them.
pub(super) struct Symbols {
    defined: BTreeMap<String, Place>,
    undefined: BTreeSet<String>,
}

impl Symbols {
    pub(super) fn read(file: &File<'_>) -> object::Result<Self> {
        let plain = |name: &[u8]| {
            let name = String::from_utf8_lossy(name);
            // C names begin with `_` in Mach-O
            let stripped = if file.format() == BinaryFormat::MachO { name.strip_prefix('_') } else { None };
            stripped.unwrap_or(&name).to_owned()
        };
        let mut symbols = Self { defined: BTreeMap::new(), undefined: BTreeSet::new() };
        if file.kind() != ObjectKind::Relocatable {
            for export in file.exports()? {
                symbols.defined.insert(plain(export.name()), Place { section: None, address: export.address() });
            }
            symbols.undefined.extend(file.imports()?.iter().map(|import| plain(import.name())));
            // what is weak may stay undefined, as do hooks that a C compiler's startup files ask for
            for symbol in file.dynamic_symbols().filter(|symbol| symbol.is_undefined() && symbol.is_weak()) {
                symbols.undefined.remove(&plain(symbol.name_bytes()?));
            }
            return Ok(symbols);
        }
        for symbol in file.symbols().filter(|symbol| symbol.is_global()) {
            let name = plain(symbol.name_bytes()?);
            if symbol.is_undefined() {
                if !symbol.is_weak() {
                    symbols.undefined.insert(name);
                }
            } else {
                symbols.defined.insert(name, Place { section: symbol.section_index(), address: symbol.address() });
            }
        }
        Ok(symbols)
    }

    pub(super) fn undefined(&self) -> impl Iterator<Item = &str> {
        self.undefined.iter().map(String::as_str)
    }

    pub(super) fn defines(&self, symbol: &str) -> bool {
        self.defined.contains_key(symbol)
    }

    pub(super) fn has_context(&self) -> bool {
        self.defined.keys().any(|name| name.ends_with(LIBRARY_CTX))
    }

    pub(super) fn library_bin(&self) -> Option<Place> {
        self.defined.iter().find(|(name, _)| name.ends_with(LIBRARY_BIN)).map(|(_, &place)| place)
    }

    pub(super) fn functions(&self) -> Vec<Named> {
        let (metadata, docs) = (self.described(METADATA), self.described(DOC));
        let special =
            |name: &str| [METADATA, DOC, LIBRARY_CTX, LIBRARY_BIN].iter().any(|prefix| name.starts_with(prefix));
        let names = self.defined.keys().filter(|name| !special(name));
        let names = names.filter_map(|symbol| symbol.strip_prefix(FUNCTION)).filter(|name| !name.is_empty());
        let function = |name: &str| BinaryFunction {
            name: name.to_owned(),
            has_metadata: metadata.contains_key(name),
            has_doc: docs.contains_key(name),
            metadata: None,
            signature: None,
            doc: None,
        };
        names.map(|name| (metadata.get(name).copied().unwrap_or(name).to_owned(), function(name))).collect()
    }

    /// The names, with and without the system library's prefix, of the functions that have a symbol with `infix`.
    fn described(&self, infix: &str) -> BTreeMap<String, &str> {
        let split = self.defined.keys().filter_map(|symbol| symbol.split_once(infix));
        split.map(|(prefix, name)| (format!("{prefix}{name}"), name)).collect()
    }
}
