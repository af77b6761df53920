//! Debug information of an object file: DWARF that maps addresses to the source lines that the code was generated from.
//!
//! There is one compile unit, with a line table and a `DW_TAG_subprogram` for each function that has source locations.
//! A subprogram is named after the source function of its first location. It has no linkage name, because `addr2line`
//! would print that instead. Code inlined from other source functions is found through its lines.

use std::collections::HashMap;
use std::convert::Infallible;

use cranelift_codegen::gimli::constants::{
    DW_AT_decl_file, DW_AT_decl_line, DW_AT_external, DW_AT_high_pc, DW_AT_language, DW_AT_low_pc, DW_AT_name,
    DW_AT_producer, DW_AT_ranges, DW_LANG_C99, DW_TAG_subprogram,
};
use cranelift_codegen::gimli::write::{
    Address, AttributeValue, DwarfUnit, FileId, LineProgram, LineString, Range, RangeList, RelocationTarget, Sections,
};
use cranelift_codegen::gimli::{Encoding, Format, LineEncoding, RunTimeEndian, SectionId};
use cranelift_entity::PrimaryMap;
use object::write::{Object, Relocation, SectionId as ObjectSection, StandardSegment, SymbolId};
use object::{BinaryFormat, RelocationEncoding, RelocationFlags, RelocationKind, SectionKind, SymbolScope, macho};

use super::recorder::Recorder;
use crate::backend::Lines;
use crate::ir::{LocationData, LocationRef};

/// All current tools read version 4, and it needs the fewest sections.
const ENCODING: Encoding = Encoding { format: Format::Dwarf32, version: 4, address_size: 8 };

/// A function with source locations.
pub(super) struct Described {
    pub(super) symbol: SymbolId,
    /// The size of its code in bytes.
    pub(super) size: u32,
    /// The code ranges with source locations; never empty.
    pub(super) lines: Vec<Lines>,
    /// The first location in the IR.
    pub(super) first: LocationRef,
}

impl Described {
    /// `None` for a function without lines.
    pub(super) fn new(symbol: SymbolId, size: u32, lines: Vec<Lines>, first: LocationRef) -> Option<Self> {
        (!lines.is_empty()).then_some(Described { symbol, size, lines, first })
    }
}

/// Writes the sections. COFF gets none: its platform's tools read another format, and the COFF relocations implemented
/// here are for code only.
pub(super) fn write(
    object: &mut Object<'_>,
    endian: RunTimeEndian,
    locations: &PrimaryMap<LocationRef, LocationData>,
    functions: &[Described],
) -> Result<(), String> {
    let Some(main) = functions.first().map(|function| &locations[function.first]) else { return Ok(()) };
    if object.format() == BinaryFormat::Coff {
        return Ok(());
    }
    let mut dwarf = DwarfUnit::new(ENCODING);
    let mut table = LineTable::new(&main.file, locations);
    let mut ranges = Vec::new();
    for (index, function) in functions.iter().enumerate() {
        let begin = Address::Symbol { symbol: index, addend: 0 };
        ranges.push(Range::StartLength { begin, length: u64::from(function.size) });
        table.add(begin, function);
        let first = &locations[function.first];
        let symbol = object.symbol(function.symbol);

        let entry = dwarf.unit.add(dwarf.unit.root(), DW_TAG_subprogram);
        let entry = dwarf.unit.get_mut(entry);
        entry.set(DW_AT_name, AttributeValue::String(text(&first.function)));
        entry.set(DW_AT_decl_file, AttributeValue::FileIndex(table.files.get(&*first.file).copied()));
        entry.set(DW_AT_decl_line, AttributeValue::Udata(u64::from(first.line)));
        entry.set(DW_AT_low_pc, AttributeValue::Address(begin));
        entry.set(DW_AT_high_pc, AttributeValue::Udata(u64::from(function.size)));
        if symbol.scope == SymbolScope::Dynamic {
            entry.set(DW_AT_external, AttributeValue::Flag(true));
        }
    }

    dwarf.unit.line_program = table.program;
    let ranges = dwarf.unit.ranges.add(RangeList(ranges));
    let root = dwarf.unit.get_mut(dwarf.unit.root());
    let producer = concat!("tvm-ffi-codegen ", env!("CARGO_PKG_VERSION"));
    root.set(DW_AT_producer, AttributeValue::String(producer.into()));
    // DWARF has no number for the source's language, and debuggers print the names of C unchanged
    root.set(DW_AT_language, AttributeValue::Language(DW_LANG_C99));
    root.set(DW_AT_name, AttributeValue::String(text(&main.file)));
    root.set(DW_AT_low_pc, AttributeValue::Address(Address::Constant(0)));
    root.set(DW_AT_ranges, AttributeValue::RangeListRef(ranges));

    let mut sections = Sections::new(Recorder::new(endian));
    dwarf.write(&mut sections).map_err(|e| e.to_string())?;
    add(object, &mut sections, functions)
}

/// The line table under construction.
struct LineTable<'a> {
    program: LineProgram,
    files: HashMap<&'a str, FileId>,
    locations: &'a PrimaryMap<LocationRef, LocationData>,
}

impl<'a> LineTable<'a> {
    fn new(main: &str, locations: &'a PrimaryMap<LocationRef, LocationData>) -> Self {
        // DWARF 4 doesn't write the directory
        let directory = LineString::String(b".".to_vec());
        let main = LineString::String(text(main));
        let mut program = LineProgram::new(ENCODING, LineEncoding::default(), directory, None, main, None);
        let directory = program.default_directory();
        let mut files = HashMap::new();
        for location in locations.values() {
            let new = |file: &&str| program.add_file(LineString::String(text(file)), directory, None);
            files.entry(&*location.file).or_insert_with_key(new);
        }
        LineTable { program, files, locations }
    }

    /// Adds the lines of a function. Code before the first line is attributed to the whole function. Code between lines
    /// that has no location gets line 0, DWARF's marker for that.
    fn add(&mut self, begin: Address, function: &Described) {
        self.program.begin_sequence(Some(begin));
        self.row(0, Some(function.first));
        let (mut end, mut shown) = (0, Some(function.first));
        for lines in &function.lines {
            if lines.start > end && end > 0 {
                self.row(end, None);
                shown = None;
            }
            if shown != Some(lines.location) {
                self.row(lines.start, Some(lines.location));
                shown = Some(lines.location);
            }
            end = lines.end;
        }
        if end < function.size {
            self.row(end, None);
        }
        self.program.end_sequence(u64::from(function.size));
    }

    fn row(&mut self, offset: u32, location: Option<LocationRef>) {
        let location = location.map(|location| &self.locations[location]);
        let file = location.and_then(|location| self.files.get(&*location.file));
        let row = self.program.row();
        row.address_offset = u64::from(offset);
        row.is_statement = location.is_some();
        row.line = location.map_or(0, |location| u64::from(location.line));
        row.file = file.copied().unwrap_or(row.file);
        self.program.generate_row();
    }
}

/// Adds gimli's output to the object.
fn add(object: &mut Object<'_>, sections: &mut Sections<Recorder>, functions: &[Described]) -> Result<(), String> {
    let macho = object.format() == BinaryFormat::MachO;
    let mut added: Vec<(SectionId, ObjectSection)> = Vec::new();
    let _ = sections.for_each(|id, section| -> Result<(), Infallible> {
        if !section.bytes.slice().is_empty() {
            let name = if macho { id.name().replacen('.', "__", 1) } else { id.name().to_owned() };
            let segment = object.segment_name(StandardSegment::Debug).to_vec();
            let new = object.add_section(segment, name.into_bytes(), SectionKind::Debug);
            object.append_section_data(new, section.bytes.slice(), 1);
            added.push((id, new));
        }
        Ok(())
    });
    let place = |id: SectionId| added.iter().find(|(known, _)| *known == id).map(|&(_, section)| section);
    sections.for_each(|id, section| {
        let Some(here) = place(id) else { return Ok(()) };
        for relocation in &section.relocations {
            let target = match relocation.target {
                RelocationTarget::Symbol(index) => FieldTarget::Function(functions[index].symbol),
                RelocationTarget::Section(of) => {
                    FieldTarget::Section(place(of).ok_or("a section of DWARF is missing")?)
                }
            };
            relocate(object, here, relocation.offset as u64, relocation.size, target, relocation.addend)?;
        }
        Ok(())
    })
}

/// The target of a reference in debug information.
enum FieldTarget {
    /// The address of a function.
    Function(SymbolId),
    /// An offset in another debug section.
    Section(ObjectSection),
}

fn relocate(
    object: &mut Object<'_>,
    section: ObjectSection,
    offset: u64,
    size: u8,
    target: FieldTarget,
    addend: i64,
) -> Result<(), String> {
    let macho = object.format() == BinaryFormat::MachO;
    let (symbol, addend) = match target {
        // Mach-O linkers don't relocate these sections: tools read the debug information of each object separately.
        FieldTarget::Section(_) if macho => {
            let place = offset as usize..offset as usize + usize::from(size);
            let bytes = &addend.to_le_bytes()[..usize::from(size)];
            let place = object.section_mut(section).data_mut().get_mut(place);
            place.ok_or("a field of DWARF is missing")?.copy_from_slice(bytes);
            return Ok(());
        }
        FieldTarget::Section(of) => (object.section_symbol(of), addend),
        // another library may export a function of the same name, but the field means this library's code
        FieldTarget::Function(symbol) => match object.symbol_section_and_offset(symbol).filter(|_| !macho) {
            Some((section, at)) => (section, addend + at as i64),
            None => (symbol, addend),
        },
    };
    let flags = if macho {
        const _: () = assert!(macho::X86_64_RELOC_UNSIGNED == macho::ARM64_RELOC_UNSIGNED);
        RelocationFlags::MachO { r_type: macho::X86_64_RELOC_UNSIGNED, r_pcrel: false, r_length: 3 }
    } else {
        let (kind, encoding) = (RelocationKind::Absolute, RelocationEncoding::Generic);
        RelocationFlags::Generic { kind, encoding, size: 8 * size }
    };
    object.add_relocation(section, Relocation { offset, symbol, addend, flags }).map_err(|e| e.to_string())
}

/// A string as DWARF allows it: not empty, and without a NUL.
fn text(text: &str) -> Vec<u8> {
    match text.replace('\0', "\u{fffd}") {
        text if text.is_empty() => b"?".to_vec(),
        text => text.into_bytes(),
    }
}
