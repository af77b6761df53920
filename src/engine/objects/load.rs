//! Linking objects into memory of ours: ELF for x86-64 and aarch64.

use std::sync::Arc;

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};
use object::{Architecture, BinaryFormat, Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use tvm_ffi_runtime::code_map::{CodeFunction, KnownCode, name_code};

use super::LoadedObjects;
use super::layout::{END, Layout, Place, Reference};
use super::memory::{Executable, Region};
use super::read::refused;
use super::relocation::{Via, stub};
use super::unit::Unit;
use crate::engine::EngineError;
use crate::engine::debug::Frames;

/// Objects in memory. Dropped in this order: what backtraces and the unwinder know of the code, and then the code.
struct Loaded {
    _names: KnownCode,
    _frames: Vec<Frames>,
    _memory: Executable,
}

/// Links a unit into memory. `addresses` are those of its imports, in their order.
///
/// # Errors
/// An object has what can't be loaded, something is out of reach, or the system gives no memory.
pub(in crate::engine) fn load(unit: &Unit<'_>, addresses: &[usize]) -> Result<LoadedObjects, EngineError> {
    for object in &unit.objects {
        let architecture = object.file.architecture();
        let known = matches!(architecture, Architecture::X86_64 | Architecture::Aarch64);
        if object.file.format() != BinaryFormat::Elf || !known || !object.file.is_little_endian() {
            let problem = "the backend Cranelift links objects of ELF for x86-64 and aarch64 alone; the backend LLVM links others";
            return Err(refused(&object.label, problem));
        }
    }
    let layout = Layout::of(unit)?;
    let memory = |source| EngineError::Memory { size: layout.len, source };
    let mut region = Region::map(layout.len, layout.needs_low_memory).map_err(memory)?;
    let linker = Linker { unit, layout: &layout, addresses, base: region.address() as u64 };
    linker.write(region.bytes())?;
    linker.check_frames(region.bytes())?;
    let kernels = unit.kernels.iter().map(|kernel| linker.kernel(kernel)).collect::<Result<_, _>>()?;
    let functions = linker.functions();
    let executable = region.protect_code(layout.code).map_err(memory)?;
    let base = executable.address();
    // SAFETY: the tables have been checked, zeros are behind each, and `Loaded` drops their registration before the memory.
    let register = |&(offset, len): &(usize, usize)| unsafe { Frames::register_in_place(base + offset, len + END) };
    let frames = layout.frames.iter().map(register).collect();
    let loaded = Loaded { _names: name_code(functions), _frames: frames, _memory: executable };
    Ok(LoadedObjects { symbols: kernels, owner: Arc::new(loaded) })
}

struct Linker<'u, 'a> {
    unit: &'u Unit<'a>,
    layout: &'u Layout,
    addresses: &'u [usize],
    /// The address of the memory.
    base: u64,
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
            let stub = stub(self.architecture(), self.address(Place::Import(import))?);
            memory.get_mut(at..at + stub.len()).ok_or_else(internal)?.copy_from_slice(&stub);
        }
        self.layout.references.iter().try_for_each(|reference| self.relocate(reference, memory))
    }

    fn architecture(&self) -> Architecture {
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
            (Err(_), Via::Call, Place::Import(import)) => {
                let stub = self.at(self.layout.stubs.get(&import))?;
                field.write(bytes, at, stub.wrapping_add_signed(reference.addend))
            }
            (written, ..) => written,
        };
        written.map_err(|_| self.out_of_reach(reference))
    }

    /// Checks the unwind tables, which an unwinder takes for granted.
    fn check_frames(&self, memory: &[u8]) -> Result<(), EngineError> {
        let code = self.base..self.base.wrapping_add(self.layout.code as u64);
        for &(place, len) in &self.layout.frames {
            let table = memory.get(place..place + len).unwrap_or_default();
            let bases = BaseAddresses::default().set_eh_frame(self.base.wrapping_add(place as u64));
            let table = EhFrame::new(table, LittleEndian);
            let mut entries = table.entries(&bases);
            let mut check = || -> Result<bool, gimli::Error> {
                while let Some(entry) = entries.next()? {
                    let CieOrFde::Fde(partial) = entry else { continue };
                    let entry = partial.parse(|table, bases, offset| table.cie_from_offset(bases, offset))?;
                    let end = entry.initial_address().checked_add(entry.len());
                    if !code.contains(&entry.initial_address()) || end.is_none_or(|end| end > code.end) {
                        return Ok(false);
                    }
                }
                Ok(true)
            };
            let problem = match check() {
                Ok(true) => continue,
                Ok(false) => "it is about code outside of the object".to_owned(),
                Err(error) => error.to_string(),
            };
            let of = self.layout.sections.iter().find(|(_, at)| **at == place).map_or(0, |((object, _), _)| *object);
            return Err(refused(&self.unit.objects[of].label, format!("section `.eh_frame` is broken: {problem}")));
        }
        Ok(())
    }

    fn at(&self, offset: Option<&usize>) -> Result<u64, EngineError> {
        let offset = offset.ok_or_else(|| EngineError::internal("a part of an object has no place"))?;
        Ok(self.base.wrapping_add(*offset as u64))
    }

    fn address(&self, place: Place) -> Result<u64, EngineError> {
        match place {
            Place::Section(object, section, offset) => {
                Ok(self.at(self.layout.sections.get(&(object, section)))?.wrapping_add(offset))
            }
            Place::Absolute(address) => Ok(address),
            Place::Import(import) => {
                let address = self.addresses.get(import);
                address.map(|&address| address as u64).ok_or_else(|| EngineError::internal("an import has no address"))
            }
            Place::Common(common) => self.at(self.layout.commons.get(common)),
        }
    }

    fn out_of_reach(&self, reference: &Reference) -> EngineError {
        let object = &self.unit.objects[reference.object];
        let section = object.file.section_by_index(reference.section);
        let section = section.as_ref().ok().and_then(|section| section.name().ok()).unwrap_or_default();
        let symbol = reference.symbol.and_then(|symbol| object.file.symbol_by_index(symbol).ok()?.name().ok());
        let symbol = symbol.filter(|name| !name.is_empty()).map(|name| format!(" `{name}`")).unwrap_or_default();
        let problem = format!(
            "section `{section}` has a relocation {} out of reach of its symbol{symbol}; compile the kernel with `-fPIC`",
            reference.relocation.name
        );
        refused(&object.label, problem)
    }

    /// The functions, as the runtime's backtraces name them.
    fn functions(&self) -> Vec<CodeFunction> {
        let mut functions = Vec::new();
        for (index, object) in self.unit.objects.iter().enumerate() {
            for symbol in object.file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
            {
                let Some(section) = symbol.section_index() else { continue };
                let (Some(&place), Ok(name)) = (self.layout.sections.get(&(index, section)), symbol.name()) else {
                    continue;
                };
                let start = self.base.wrapping_add(place as u64).wrapping_add(symbol.address()) as usize;
                let size = usize::try_from(symbol.size()).unwrap_or(usize::MAX);
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
        let start =
            self.at(section).map_err(|_| refused(&object.label, format!("`{name}` is in no section of code")))?;
        Ok((name.to_owned(), start.wrapping_add(symbol.address()) as usize))
    }
}
