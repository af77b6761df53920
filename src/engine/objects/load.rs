//! Links objects into this crate's own memory: ELF for x86-64 and aarch64.

use std::ops::Range;
use std::sync::Arc;

use object::{
    Architecture, BinaryFormat, Object, ObjectSection, ObjectSymbol, SectionFlags, SectionKind, SymbolKind, elf,
};
use tvm_ffi_runtime::unstable::code_map::{CodeFunction, KnownCode, name_code};

use super::frames::FrameTable;
use super::layout::{END, Layout, Reference, Resolution};
use super::loaded::LoadedObjects;
use super::memory::{Executable, Region};
use super::read::refused;
use super::relocation::{Via, stub};
use super::unit::Unit;
use crate::engine::debug::Frames;
use crate::engine::{EngineError, KeepAlive};

/// Objects in memory. Drop order: the registrations with backtraces and the unwinder, then the code.
struct Loaded {
    _names: KnownCode,
    _frames: Vec<Frames>,
    _memory: Executable,
}

/// Links a unit into memory. `addresses` are those of its imports, in the same order.
///
/// # Errors
/// An object has unsupported contents, something is out of range, or the system has no memory.
pub(in crate::engine) fn load(unit: &Unit<'_>, addresses: &[usize]) -> Result<LoadedObjects, EngineError> {
    let kernels = |linker: &Linker<'_, '_>, _: &mut [u8]| {
        unit.kernels.iter().map(|kernel| linker.kernel(kernel)).collect::<Result<_, EngineError>>()
    };
    let (symbols, owner) = link(unit, addresses, 0, kernels)?;
    Ok(LoadedObjects { symbols, owner })
}

/// Links a unit into memory, with `room` bytes for other code. `finish` is called while the memory is writable.
pub(super) fn link<T>(
    unit: &Unit<'_>,
    addresses: &[usize],
    room: usize,
    finish: impl FnOnce(&Linker<'_, '_>, &mut [u8]) -> Result<T, EngineError>,
) -> Result<(T, KeepAlive), EngineError> {
    for object in &unit.objects {
        let architecture = object.file.architecture();
        let known = matches!(architecture, Architecture::X86_64 | Architecture::Aarch64);
        if object.file.format() != BinaryFormat::Elf || !known || !object.file.is_little_endian() {
            let problem = "the backend Cranelift links objects of ELF for x86-64 and aarch64 alone; the backend LLVM \
                links others";
            return Err(refused(&object.label, problem));
        }
    }
    let layout = Layout::of(unit, room)?;
    let memory = |source| EngineError::Memory { size: layout.len, source };
    let mut region = Region::map(layout.len, layout.needs_low_memory).map_err(memory)?;
    let linker = Linker { unit, layout: &layout, addresses, base: region.address() as u64 };
    linker.write(region.bytes())?;
    let frames = linker.check_frames(region.bytes())?;
    let finished = finish(&linker, region.bytes())?;
    let functions = linker.functions();
    let executable = region.protect_code(layout.code).map_err(memory)?;
    let base = executable.address();
    // SAFETY: the tables have been checked and are followed by zeros, and `Loaded` drops their registration before the
    // memory.
    let register = |&(offset, len): &(usize, usize)| unsafe { Frames::register_in_place(base + offset, len + END) };
    let frames = frames.iter().map(register).collect();
    let loaded = Loaded { _names: name_code(functions), _frames: frames, _memory: executable };
    Ok((finished, Arc::new(loaded)))
}

/// A unit being linked into memory.
pub(super) struct Linker<'u, 'a> {
    pub(super) unit: &'u Unit<'a>,
    pub(super) layout: &'u Layout,
    addresses: &'u [usize],
    /// The address of the memory.
    pub(super) base: u64,
}

impl Linker<'_, '_> {
    /// Writes all parts into the memory.
    fn write(&self, memory: &mut [u8]) -> Result<(), EngineError> {
        let internal = || EngineError::internal("a part of an object outside of its memory");
        for (&(object, section), &place) in &self.layout.sections {
            let object = &self.unit.objects[object];
            let malformed = |error: object::Error| refused(&object.label, error.to_string());
            let section = object.file.section_by_index(section).map_err(malformed)?;
            if section.kind() == SectionKind::UninitializedData {
                continue;
            }
            let data = section.data().map_err(malformed)?;
            memory.get_mut(place..place + data.len()).ok_or_else(internal)?.copy_from_slice(data);
        }
        for (&place, &at) in &self.layout.words {
            let address = self.address(place)?;
            memory.get_mut(at..at + 8).ok_or_else(internal)?.copy_from_slice(&address.to_le_bytes());
        }
        for (&import, &at) in &self.layout.stubs {
            let stub = stub(self.architecture(), self.address(Resolution::Import(import))?);
            memory.get_mut(at..at + stub.len()).ok_or_else(internal)?.copy_from_slice(&stub);
        }
        self.layout.references.iter().try_for_each(|reference| self.relocate(reference, memory))
    }

    pub(super) fn architecture(&self) -> Architecture {
        self.unit.objects.first().map_or(Architecture::Unknown, |object| object.file.architecture())
    }

    fn relocate(&self, reference: &Reference, memory: &mut [u8]) -> Result<(), EngineError> {
        let field = reference.relocation.field;
        let bytes = memory.get_mut(reference.at..reference.at + field.width());
        let bytes = bytes.ok_or_else(|| EngineError::internal("a relocation outside of its memory"))?;
        let at = self.base.wrapping_add(reference.at as u64);
        let direct = match reference.relocation.via {
            Via::Got => self.at(self.layout.words.get(&reference.place))?,
            Via::Symbol | Via::Call => self.address(reference.place)?,
        };
        let written = field.write(bytes, at, direct.wrapping_add_signed(reference.addend));
        let written = match (written, reference.relocation.via, reference.place) {
            (Err(_), Via::Call, Resolution::Import(import)) => {
                let stub = self.at(self.layout.stubs.get(&import))?;
                field.write(bytes, at, stub.wrapping_add_signed(reference.addend))
            }
            (written, ..) => written,
        };
        written.map_err(|_| self.out_of_reach(reference))
    }

    /// Checks the unwind tables, since unwinders don't. Returns those that describe code.
    fn check_frames(&self, memory: &[u8]) -> Result<Vec<(usize, usize)>, EngineError> {
        let mut tables: Vec<(Range<u64>, (usize, usize))> = Vec::new();
        for &(place, len) in &self.layout.frames {
            let of = self.layout.sections.iter().find(|(_, at)| **at == place).map_or(0, |((object, _), _)| *object);
            let broken = |problem: &str| {
                refused(&self.unit.objects[of].label, format!("section `.eh_frame` is broken: {problem}"))
            };
            let table = memory.get(place..place + len).unwrap_or_default();
            let code = self.check_table(of, place, table, memory).map_err(|problem| broken(&problem))?;
            // libgcc finds a table by the address range from its first to its last function
            if tables.iter().any(|(other, _)| code.start < other.end && other.start < code.end) {
                return Err(broken("it is about code that another table is about"));
            }
            if !code.is_empty() {
                tables.push((code, (place, len)));
            }
        }
        Ok(tables.into_iter().map(|(_, table)| table).collect())
    }

    /// Checks an object's table. Returns the address range from its first to its last function.
    fn check_table(&self, object: usize, place: usize, table: &[u8], memory: &[u8]) -> Result<Range<u64>, String> {
        let address = self.base.wrapping_add(place as u64);
        let read = FrameTable::read(table, self.architecture())?;
        let code = self.code_of(object);
        let mut functions = Vec::with_capacity(read.functions.len());
        for frame in &read.functions {
            let of_frame = frame.code(table, address).ok_or("a function without end")?;
            if !code.iter().any(|section| section.start <= of_frame.start && of_frame.end <= section.end) {
                return Err("it is about code outside of the object".to_owned());
            }
            let data = frame.data.and_then(|data| data.read(table, address)).unwrap_or(0);
            if data != 0 && !(self.base..self.base.wrapping_add(self.layout.len as u64)).contains(&data) {
                return Err("the data of a function's runtime is outside of the object".to_owned());
            }
            functions.push(of_frame);
        }
        for personality in &read.personalities {
            let mut function = personality.read(table, address);
            if personality.is_indirect() {
                let word = |at: u64| {
                    let at = usize::try_from(at.wrapping_sub(self.base)).ok()?;
                    Some(u64::from_le_bytes(memory.get(at..at.checked_add(8)?)?.try_into().ok()?))
                };
                function = function.and_then(word);
            }
            let is_function = |&address: &u64| {
                let is_own =
                    || (0..self.unit.objects.len()).any(|o| self.code_of(o).iter().any(|c| c.contains(&address)));
                self.addresses.iter().any(|import| *import as u64 == address) || is_own()
            };
            if function.filter(is_function).is_none() {
                return Err("the function of a language's runtime is unknown".to_owned());
            }
        }
        functions.retain(|function| !function.is_empty());
        functions.sort_unstable_by_key(|function| function.start);
        if functions.windows(2).any(|pair| pair[1].start < pair[0].end) {
            return Err("two functions share code".to_owned());
        }
        let (start, end) = (functions.first().map_or(0, |f| f.start), functions.last().map_or(0, |f| f.end));
        Ok(start..end)
    }

    /// The address ranges of an object's code.
    pub(super) fn code_of(&self, object: usize) -> Vec<Range<u64>> {
        let sections = self.unit.objects[object].file.sections().filter(|section| {
            matches!(section.flags(), SectionFlags::Elf { sh_flags } if sh_flags & u64::from(elf::SHF_EXECINSTR) != 0)
        });
        let range = |section: object::Section<'_, '_>| {
            let place = *self.layout.sections.get(&(object, section.index()))?;
            let start = self.base.wrapping_add(place as u64);
            // writable memory is never executable
            (place < self.layout.code).then(|| start..start.wrapping_add(section.size()))
        };
        sections.filter_map(range).collect()
    }

    fn at(&self, offset: Option<&usize>) -> Result<u64, EngineError> {
        let offset = offset.ok_or_else(|| EngineError::internal("a part of an object has no place"))?;
        Ok(self.base.wrapping_add(*offset as u64))
    }

    pub(super) fn address(&self, place: Resolution) -> Result<u64, EngineError> {
        match place {
            Resolution::Section(object, section, offset) => {
                Ok(self.at(self.layout.sections.get(&(object, section)))?.wrapping_add(offset))
            }
            Resolution::Absolute(address) => Ok(address),
            Resolution::Import(import) => {
                let address = self.addresses.get(import);
                address.map(|&address| address as u64).ok_or_else(|| EngineError::internal("an import has no address"))
            }
            Resolution::Common(common) => self.at(self.layout.commons.get(common)),
        }
    }

    fn out_of_reach(&self, reference: &Reference) -> EngineError {
        let object = &self.unit.objects[reference.object];
        let section = object.file.section_by_index(reference.section);
        let section = section.as_ref().ok().and_then(|section| section.name().ok()).unwrap_or_default();
        let symbol = reference.symbol.and_then(|symbol| object.file.symbol_by_index(symbol).ok()?.name().ok());
        let symbol = symbol.filter(|name| !name.is_empty()).map(|name| format!(" `{name}`")).unwrap_or_default();
        let problem = format!(
            "section `{section}` has a relocation {} out of reach of its symbol{symbol}; compile as \
             position-independent code (`-fPIC`)",
            reference.relocation.name
        );
        refused(&object.label, problem)
    }

    /// The functions, with the names that the runtime's backtraces show.
    fn functions(&self) -> Vec<CodeFunction> {
        let mut functions = Vec::new();
        for (index, object) in self.unit.objects.iter().enumerate() {
            for symbol in object.file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
            {
                let Some(section) = symbol.section_index() else { continue };
                let (Ok(section), Ok(name)) = (object.file.section_by_index(section), symbol.name()) else { continue };
                let Some(&place) = self.layout.sections.get(&(index, section.index())) else { continue };
                // a symbol's address and size are untrusted
                let end = symbol.address().checked_add(symbol.size());
                if end.is_none_or(|end| end > section.size()) {
                    continue;
                }
                let start = self.base.wrapping_add(place as u64).wrapping_add(symbol.address()) as usize;
                let size = symbol.size() as usize;
                functions.push(CodeFunction { name: name.to_owned(), start, size, lines: Vec::new() });
            }
        }
        functions
    }

    fn kernel(&self, name: &str) -> Result<(String, usize), EngineError> {
        let global =
            self.unit.globals.get(name).ok_or_else(|| EngineError::internal(format!("{name} was not defined")))?;
        let object = &self.unit.objects[global.object];
        let symbol = object.file.symbol_by_index(global.symbol).map_err(|e| refused(&object.label, e.to_string()))?;
        let section = symbol.section_index();
        let section = section.and_then(|section| self.layout.sections.get(&(global.object, section)));
        let start = self.at(section).ok().map(|start| start.wrapping_add(symbol.address()));
        let is_code = |start: &u64| self.code_of(global.object).iter().any(|code| code.contains(start));
        let start = start
            .filter(is_code)
            .ok_or_else(|| refused(&object.label, format!("`{name}` is in no section of code")))?;
        Ok((name.to_owned(), start as usize))
    }
}
