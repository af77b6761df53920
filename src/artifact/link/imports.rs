//! An object with a Windows library's imports, for mingw's linkers.
//!
//! Every other linker also accepts an import library in Microsoft's short form. GNU's linker puts the end of the
//! table of such imports before its entries, without a warning, and calls then jump to invalid addresses.

use object::write::{Object, Relocation, SectionId, StandardSection, Symbol, SymbolId, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, RelocationFlags, SectionKind, SymbolFlags, SymbolKind, SymbolScope, pe,
};

/// Builds an object that imports each symbol from `image`, as the "Microsoft PE format" describes it in ".idata". It
/// has a directory entry, a table of names, and a table of addresses that the loader fills. For each symbol, a
/// function jumps to the symbol's address.
pub(super) fn import_object(image: &str, symbols: impl IntoIterator<Item = String>) -> object::write::Result<Vec<u8>> {
    let mut object = Object::new(BinaryFormat::Coff, Architecture::X86_64, Endianness::Little);
    // the linker orders parts of `.idata` by the suffix after the dollar
    let mut part = |number: u8| {
        let name = format!(".idata${number}");
        let section = object.add_section(Vec::new(), name.into_bytes(), SectionKind::Data);
        (section, object.section_symbol(section))
    };
    let [directory, names, addresses, hints, file] = [2, 4, 5, 6, 7].map(&mut part);
    let code = object.section_id(StandardSection::Text);

    // names, time stamp, chain of forwarders, the image's name, addresses
    object.append_section_data(directory.0, &[0; 20], 4);
    for (offset, to) in [(0, names), (12, file), (16, addresses)] {
        relative(&mut object, directory.0, offset, to.1, 0)?;
    }
    object.append_section_data(file.0, &[image.as_bytes(), &[0]].concat(), 2);
    for symbol in symbols {
        // a hint, which may be wrong: the index of the name in the image's table
        let hint = object.append_section_data(hints.0, &[&[0, 0], symbol.as_bytes(), &[0]].concat(), 2);
        let entry = object.append_section_data(names.0, &[0; 8], 8);
        relative(&mut object, names.0, entry, hints.1, hint)?;
        let entry = object.append_section_data(addresses.0, &[0; 8], 8);
        relative(&mut object, addresses.0, entry, hints.1, hint)?;
        let address = define(&mut object, format!("__imp_{symbol}"), addresses.0, entry, SymbolKind::Data);
        // jmp *address(%rip), relative to the end of the instruction
        let jump = object.append_section_data(code, &[0xff, 0x25, 0, 0, 0, 0], 2);
        let flags = RelocationFlags::Coff { typ: pe::IMAGE_REL_AMD64_REL32 };
        object.add_relocation(code, Relocation { offset: jump + 2, symbol: address, addend: -4, flags })?;
        define(&mut object, symbol, code, jump, SymbolKind::Text);
    }
    // the ends of both tables
    object.append_section_data(names.0, &[0; 8], 8);
    object.append_section_data(addresses.0, &[0; 8], 8);
    object.write()
}

/// Stores an offset relative to the start of the image.
fn relative(
    object: &mut Object<'_>,
    section: SectionId,
    offset: u64,
    symbol: SymbolId,
    addend: u64,
) -> object::write::Result<()> {
    let flags = RelocationFlags::Coff { typ: pe::IMAGE_REL_AMD64_ADDR32NB };
    object.add_relocation(section, Relocation { offset, symbol, addend: addend as i64, flags })
}

fn define(object: &mut Object<'_>, name: String, section: SectionId, value: u64, kind: SymbolKind) -> SymbolId {
    object.add_symbol(Symbol {
        name: name.into_bytes(),
        value,
        size: 0,
        kind,
        scope: SymbolScope::Linkage,
        weak: false,
        section: SymbolSection::Section(section),
        flags: SymbolFlags::None,
    })
}
