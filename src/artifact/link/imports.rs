//! An object with the imports of a library for Windows, for mingw's linkers.
//!
//! An import library of Microsoft's short form does as well for every other linker. GNU's puts the end of the table of such imports before its entries, and
//! says nothing: calls then lead nowhere.

use object::write::{Object, Relocation, SectionId, StandardSection, Symbol, SymbolId, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, RelocationFlags, SectionKind, SymbolFlags, SymbolKind, SymbolScope, pe,
};

/// An object that says of each symbol that it comes from `image`, as the "Microsoft PE format" describes it in ".idata": an entry of the directory, a
/// table of names, a table of addresses, which the loader fills, and for each symbol the function that jumps to its address.
pub(super) fn import_object(image: &str, symbols: impl IntoIterator<Item = String>) -> object::write::Result<Vec<u8>> {
    let mut object = Object::new(BinaryFormat::Coff, Architecture::X86_64, Endianness::Little);
    // the linker orders parts of `.idata` by what stands behind the dollar
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
        // a hint of the name's index in the image's table, which may be wrong
        let hint = object.append_section_data(hints.0, &[&[0, 0], symbol.as_bytes(), &[0]].concat(), 2);
        let entry = object.append_section_data(names.0, &[0; 8], 8);
        relative(&mut object, names.0, entry, hints.1, hint)?;
        let entry = object.append_section_data(addresses.0, &[0; 8], 8);
        relative(&mut object, addresses.0, entry, hints.1, hint)?;
        let address = define(&mut object, format!("__imp_{symbol}"), addresses.0, entry, SymbolKind::Data);
        // jmp *address(%rip), from where the instruction ends
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

/// Stores the offset of a place from the start of the image.
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
