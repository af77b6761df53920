//! The memory layout of a unit.

use std::collections::{HashMap, HashSet};

use object::{
    Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionFlags, SectionIndex, SectionKind,
    SymbolIndex, SymbolSection, elf,
};
use region::page;

use super::read::{GOT, ObjectFile, Strength, is_loaded, refused};
use super::relocation::{Field, Relocation, STUB, Via, find};
use super::unit::Unit;
use crate::engine::EngineError;

/// The definition that a symbol resolves to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Resolution {
    /// An offset in a section of an object.
    Section(usize, SectionIndex, u64),
    /// A constant.
    Absolute(u64),
    /// An import of the unit, by index.
    Import(usize),
    /// A common symbol, by index.
    Common(usize),
}

/// A field that refers to a symbol.
pub(super) struct Reference {
    /// The field's offset in the memory.
    pub(super) at: usize,
    pub(super) relocation: Relocation,
    pub(super) place: Resolution,
    pub(super) addend: i64,
    /// Where the field is, for messages.
    pub(super) object: usize,
    pub(super) section: SectionIndex,
    pub(super) symbol: Option<SymbolIndex>,
}

/// The offsets of a unit's parts in memory. Code and constants come first, with address words and stubs for other
/// targets. The parts that code writes follow.
pub(super) struct Layout {
    pub(super) sections: HashMap<(usize, SectionIndex), usize>,
    pub(super) commons: Vec<usize>,
    /// Offsets of words that contain addresses.
    pub(super) words: HashMap<Resolution, usize>,
    /// Offsets of stubs that jump to imports.
    pub(super) stubs: HashMap<usize, usize>,
    /// Offsets and sizes of unwind tables. Each is followed by zeros.
    pub(super) frames: Vec<(usize, usize)>,
    pub(super) references: Vec<Reference>,
    /// The offset of the room for generated code.
    pub(super) room: usize,
    /// The size of code and constants in bytes, rounded up to pages.
    pub(super) code: usize,
    pub(super) len: usize,
    pub(super) needs_low_memory: bool,
}

/// The maximum size in bytes within which everything is in range.
const MOST: usize = i32::MAX as usize;

/// The zeros that end an unwind table.
pub(super) const END: usize = 4;

/// The offset of the next part.
#[derive(Clone, Copy, Default)]
struct Cursor(usize);

impl Cursor {
    /// Reserves room for a part; `None` if there is none.
    fn take(&mut self, size: u64, align: u64) -> Option<usize> {
        let align =
            usize::try_from(align.max(1)).ok().filter(|align| align.is_power_of_two() && *align <= page::size())?;
        let start = self.0.checked_next_multiple_of(align)?;
        self.0 = start.checked_add(usize::try_from(size).ok()?).filter(|&end| end <= MOST)?;
        Some(start)
    }
}

impl Layout {
    /// Lays out a unit, with `room` bytes for other code.
    ///
    /// # Errors
    /// An object is malformed or too large, or has an unsupported relocation.
    pub(super) fn of(unit: &Unit<'_>, room: usize) -> Result<Self, EngineError> {
        let mut layout = Layout {
            sections: HashMap::new(),
            commons: Vec::new(),
            words: HashMap::new(),
            stubs: HashMap::new(),
            frames: Vec::new(),
            references: Vec::new(),
            room: 0,
            code: 0,
            len: 0,
            needs_low_memory: false,
        };
        let too_large = |object: &ObjectFile<'_>, name: &str| {
            refused(&object.label, format!("section `{name}` is too large, or has an alignment of more than a page"))
        };
        let mut cursor = Cursor::default();
        for writable in [false, true] {
            for (index, object) in unit.objects.iter().enumerate() {
                for section in object.file.sections().filter(|section| belongs(section, writable)) {
                    let name = section.name().unwrap_or_default();
                    let place = cursor.take(section.size(), section.align());
                    let place = place.ok_or_else(|| too_large(object, name))?;
                    layout.sections.insert((index, section.index()), place);
                    if name == ".eh_frame" && section.size() > 0 {
                        layout.frames.push((place, cursor.0 - place));
                        cursor.take(END as u64, 1).ok_or_else(|| too_large(object, name))?;
                    }
                }
            }
            if !writable {
                let links = layout.find_references(unit)?;
                for link in links {
                    let room = match link {
                        Link::Word(place) => cursor.take(8, 8).map(|at| layout.words.insert(place, at)),
                        Link::Stub(import) => {
                            cursor.take(STUB as u64, STUB as u64).map(|at| layout.stubs.insert(import, at))
                        }
                    };
                    room.ok_or_else(|| EngineError::internal("objects that refer to more than 2 GiB of symbols"))?;
                }
                let place = cursor.take(room as u64, STUB as u64);
                layout.room = place.ok_or_else(|| EngineError::internal("objects without room for more code"))?;
                layout.code = cursor.0.next_multiple_of(page::size());
                cursor.0 = layout.code;
            }
        }
        for (_, object, size, align) in commons(unit) {
            let place = cursor.take(size, align).ok_or_else(|| too_large(&unit.objects[object], "COMMON"))?;
            layout.commons.push(place);
        }
        layout.len = cursor.0;
        // writable sections get their offsets only now
        for reference in &mut layout.references {
            let start = layout.sections.get(&(reference.object, reference.section));
            reference.at += start.copied().ok_or_else(|| EngineError::internal("a section without a place"))?;
        }
        Ok(layout)
    }

    /// Reads all relocations. Their offsets are still relative to their sections. Returns the words and stubs that they
    /// need.
    fn find_references(&mut self, unit: &Unit<'_>) -> Result<Vec<Link>, EngineError> {
        let mut links = Vec::new();
        let commons: HashMap<&str, usize> = commons(unit).enumerate().map(|(i, (name, ..))| (name, i)).collect();
        let imports: HashMap<&str, usize> =
            unit.imports.iter().enumerate().map(|(i, import)| (import.name, i)).collect();
        let symbols = Resolver { unit, commons, imports };
        let mut linked = HashSet::new();
        for (index, object) in unit.objects.iter().enumerate() {
            for section in object.file.sections().filter(|section| belongs(section, false) || belongs(section, true)) {
                for (offset, raw) in section.relocations() {
                    let reference = symbols.reference(index, &section, offset, &raw)?;
                    self.needs_low_memory |= reference.relocation.field.needs_low_memory();
                    let link = match (reference.relocation.via, reference.place) {
                        (Via::Got, place) => Some(Link::Word(place)),
                        (Via::Call, Resolution::Import(import)) => Some(Link::Stub(import)),
                        _ => None,
                    };
                    links.extend(link.filter(|link| linked.insert(*link)));
                    self.references.push(reference);
                }
            }
        }
        Ok(links)
    }
}

/// A table entry through which a reference goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Link {
    Word(Resolution),
    Stub(usize),
}

/// Whether a section is loaded among those that code writes (`writable`), or among the others.
fn belongs<'a>(section: &impl ObjectSection<'a>, writable: bool) -> bool {
    let flags = section.flags();
    let is_written = matches!(flags, SectionFlags::Elf { sh_flags } if sh_flags & u64::from(elf::SHF_WRITE) != 0);
    is_loaded(flags) && section.kind() != SectionKind::Note && is_written == writable
}

/// The common symbols of a unit in order: name, object, size, alignment. Those of one name are merged; the
/// largest size and alignment count.
fn commons<'u>(unit: &'u Unit<'_>) -> impl Iterator<Item = (&'u str, usize, u64, u64)> {
    let mut names: Vec<(&str, usize)> = unit
        .globals
        .iter()
        .filter(|(_, global)| global.strength == Strength::Common)
        .map(|(name, global)| (*name, global.object))
        .collect();
    names.sort_unstable();
    names.into_iter().map(|(name, object)| {
        let all = unit.objects.iter().flat_map(move |object| {
            let same = object.defined.iter().filter(move |definition| definition.name == name);
            same.filter_map(|definition| object.file.symbol_by_index(definition.symbol).ok())
        });
        // the address of a common symbol in an object is its alignment (System V ABI, "Symbol Table")
        let (size, align) =
            all.fold((0, 1), |(size, align), symbol| (size.max(symbol.size()), align.max(symbol.address())));
        (name, object, size, align)
    })
}

struct Resolver<'u, 'a> {
    unit: &'u Unit<'a>,
    commons: HashMap<&'u str, usize>,
    imports: HashMap<&'u str, usize>,
}

impl Resolver<'_, '_> {
    fn reference<'d>(
        &self,
        index: usize,
        section: &impl ObjectSection<'d>,
        offset: u64,
        raw: &object::Relocation,
    ) -> Result<Reference, EngineError> {
        let object = &self.unit.objects[index];
        let symbol = match raw.target() {
            RelocationTarget::Symbol(symbol) => Some(symbol),
            _ => None,
        };
        let problem = |what: String| {
            let name = symbol.and_then(|symbol| object.file.symbol_by_index(symbol).ok()?.name().ok());
            let against =
                name.filter(|name| !name.is_empty()).map(|name| format!(" against `{name}`")).unwrap_or_default();
            refused(&object.label, format!("section `{}` has {what}{against}", section.name().unwrap_or_default()))
        };
        let RelocationFlags::Elf { r_type } = raw.flags() else {
            return Err(problem("no relocations of ELF".to_owned()));
        };
        if raw.has_implicit_addend() {
            return Err(problem("relocations without addends".to_owned()));
        }
        let architecture = object.file.architecture();
        let relocation = find(architecture, r_type)
            .ok_or_else(|| problem(format!("a relocation of type {r_type}, which can't be applied here,")))?;
        let place = match symbol {
            Some(symbol) => self.place(index, symbol).map_err(problem)?,
            None => Resolution::Absolute(0),
        };
        let end = offset.checked_add(relocation.field.width() as u64).filter(|&end| end <= section.size());
        let at =
            usize::try_from(offset).ok().filter(|_| end.is_some() && section.kind() != SectionKind::UninitializedData);
        let at = at.ok_or_else(|| problem(format!("a relocation {} outside of its bytes", relocation.name)))?;
        let relocation = self.call_without_plt(section, at, relocation, place);
        let (addend, section) = (raw.addend(), section.index());
        Ok(Reference { at, relocation, place, addend, object: index, section, symbol })
    }

    /// The relocation unchanged, with one exception: a call of an import that an older assembler emitted as a plain
    /// distance. Such a call can use a stub.
    fn call_without_plt<'d>(
        &self,
        section: &impl ObjectSection<'d>,
        at: usize,
        relocation: Relocation,
        place: Resolution,
    ) -> Relocation {
        let is_import = matches!(place, Resolution::Import(_));
        let is_distance = relocation.via == Via::Symbol && relocation.field == Field::Relative32;
        let opcode = || at.checked_sub(1).and_then(|before| section.data().ok()?.get(before).copied());
        // `call` and `jmp`: none of these bytes can precede a distance in an operand
        let is_call =
            is_import && is_distance && section.kind() == SectionKind::Text && matches!(opcode(), Some(0xe8 | 0xe9));
        if is_call { Relocation { via: Via::Call, ..relocation } } else { relocation }
    }

    fn place(&self, index: usize, symbol: SymbolIndex) -> Result<Resolution, String> {
        let broken = |error: object::Error| format!("a relocation with a broken symbol ({error})");
        let symbol = self.unit.objects[index].file.symbol_by_index(symbol).map_err(broken)?;
        if !symbol.is_global() {
            return self.own_place(index, &symbol);
        }
        let name = symbol.name().map_err(broken)?;
        if let Some(&import) = self.imports.get(name) {
            return Ok(Resolution::Import(import));
        }
        if let Some(&common) = self.commons.get(name) {
            return Ok(Resolution::Common(common));
        }
        match self.unit.globals.get(name) {
            // distances from it are addresses
            None if name == GOT => Ok(Resolution::Absolute(0)),
            Some(global) => {
                let symbol = self.unit.objects[global.object].file.symbol_by_index(global.symbol).map_err(broken)?;
                self.own_place(global.object, &symbol)
            }
            None => self.own_place(index, &symbol),
        }
    }

    fn own_place<'d>(&self, index: usize, symbol: &impl ObjectSymbol<'d>) -> Result<Resolution, String> {
        match symbol.section() {
            SymbolSection::Absolute => Ok(Resolution::Absolute(symbol.address())),
            SymbolSection::Section(section) => {
                let found = self.unit.objects[index].file.section_by_index(section);
                let found = found.map_err(|error| format!("a relocation with a broken symbol ({error})"))?;
                match belongs(&found, false) || belongs(&found, true) {
                    true => Ok(Resolution::Section(index, section, symbol.address())),
                    false => Err(format!(
                        "a relocation into section `{}`, which isn't loaded",
                        found.name().unwrap_or_default()
                    )),
                }
            }
            SymbolSection::Undefined if symbol.index() == SymbolIndex(0) => Ok(Resolution::Absolute(0)),
            _ => Err("a relocation with a symbol of no section".to_owned()),
        }
    }
}
