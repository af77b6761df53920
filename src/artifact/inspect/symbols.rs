//! The symbols of TVM FFI, with the names from `symbol::` in upstream's `extra/module.h`. In a system library they
//! contain its prefix: `__tvm_ffi_<prefix><name>`, `<prefix>__tvm_ffi__library_ctx` and so on.

use std::collections::{BTreeMap, BTreeSet};

use object::read::SymbolIterator;
use object::read::pe::{ImageNtHeaders, ImageThunkData, PeFile};
use object::{File, LittleEndian as LE, Object, ObjectKind, ObjectSymbol, SectionIndex};

use tvm_ffi_runtime::abi::symbol::{DOC, FUNCTION, LIBRARY_BIN, LIBRARY_CTX, METADATA};

use super::binary::BinaryFunction;
use super::texts::Named;
use crate::object_names::Names;
use crate::object_symbols::c_name;

/// The location of a symbol in a file.
#[derive(Clone, Copy)]
pub(super) struct SymbolLocation {
    /// The section, for an object: its addresses are offsets into sections.
    pub(super) section: Option<SectionIndex>,
    pub(super) address: u64,
}

/// The symbols of a file by their C names.
pub(super) struct SymbolTable {
    defined: BTreeMap<String, SymbolLocation>,
    undefined: BTreeSet<String>,
}

impl SymbolTable {
    pub(super) fn read(file: &File<'_>, names: &mut Names) -> Result<Self, String> {
        let mut symbols = Self { defined: BTreeMap::new(), undefined: BTreeSet::new() };
        match file {
            File::Pe32(file) => symbols.read_pe(file, names)?,
            File::Pe64(file) => symbols.read_pe(file, names)?,
            File::Elf32(_) | File::Elf64(_) if file.kind() != ObjectKind::Relocatable => {
                symbols.read_table(file, file.dynamic_symbols(), names)?;
            }
            // also for a linked Mach-O file: the `object` crate's list of imports refuses symbols that may come from
            // any library, as the runtime's do
            _ => symbols.read_table(file, file.symbols(), names)?,
        }
        Ok(symbols)
    }

    /// Reads the exported and the undefined symbols of a table.
    fn read_table<'data, 'file>(
        &mut self,
        file: &File<'_>,
        table: SymbolIterator<'data, 'file>,
        names: &mut Names,
    ) -> Result<(), String> {
        let linked = file.kind() != ObjectKind::Relocatable;
        for symbol in table.filter(|symbol| symbol.is_global()) {
            // a weak symbol may stay undefined, such as the hooks in a C compiler's startup files
            if symbol.is_undefined() && symbol.is_weak() {
                continue;
            }
            let name = names.text(symbol.name_bytes().map_err(text)?)?;
            let name = c_name(file.format(), &name).to_owned();
            if symbol.is_undefined() {
                self.undefined.insert(name);
            } else if !linked {
                self.defined
                    .insert(name, SymbolLocation { section: symbol.section_index(), address: symbol.address() });
            } else if symbol.is_definition() {
                self.defined.insert(name, SymbolLocation { section: None, address: symbol.address() });
            }
        }
        self.undefined.remove("");
        Ok(())
    }

    /// Reads the entries one by one: lists of imports may overlap, and together they may exceed the memory.
    fn read_pe<Pe: ImageNtHeaders>(&mut self, file: &PeFile<'_, Pe>, names: &mut Names) -> Result<(), String> {
        if let Some(table) = file.export_table().map_err(text)? {
            for (pointer, index) in table.name_iter() {
                let name = names.text(table.name_from_pointer(pointer).map_err(text)?)?;
                let address = table.address_by_index(index.into()).map_err(text)?;
                if !table.is_forward(address) {
                    let address = file.relative_address_base().wrapping_add(address.into());
                    self.defined.insert(name.into_owned(), SymbolLocation { section: None, address });
                }
            }
        }
        let Some(table) = file.import_table().map_err(text)? else { return Ok(()) };
        let mut libraries = table.descriptors().map_err(text)?;
        while let Some(library) = libraries.next().map_err(text)? {
            let list = Some(library.original_first_thunk.get(LE)).filter(|&list| list != 0);
            let mut thunks = table.thunks(list.unwrap_or(library.first_thunk.get(LE))).map_err(text)?;
            while let Some(thunk) = thunks.next::<Pe>().map_err(text)? {
                let name = match thunk.is_ordinal() {
                    true => &[],
                    false => table.hint_name(thunk.address()).map_err(text)?.1,
                };
                self.undefined.insert(names.text(name)?.into_owned());
            }
        }
        self.undefined.remove("");
        Ok(())
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

    pub(super) fn library_bin(&self) -> Option<SymbolLocation> {
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
            launches: Vec::new(),
        };
        names.map(|name| (metadata.get(name).copied().unwrap_or(name).to_owned(), function(name))).collect()
    }

    /// The names, with and without the system library's prefix, of the functions that have a symbol with `infix`.
    fn described(&self, infix: &str) -> BTreeMap<String, &str> {
        let split = self.defined.keys().filter_map(|symbol| symbol.split_once(infix));
        split.map(|(prefix, name)| (format!("{prefix}{name}"), name)).collect()
    }
}

fn text(error: object::Error) -> String {
    error.to_string()
}
