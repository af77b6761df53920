//! Writes the object that contains a `library_bin`.

use std::path::Path;

use memmap2::{MmapMut, MmapOptions};
use object::write::{Object, StandardSection, Symbol, SymbolSection};
use object::{Architecture, BinaryFormat, SectionFlags, SectionKind, SymbolFlags, SymbolKind, SymbolScope, elf};
use target_lexicon::Triple;
use tvm_ffi_runtime::abi::symbol::LIBRARY_BIN;
use tvm_ffi_runtime::unstable::library_bin::Layout;

use super::payload::PackError;
use super::stream::{ObjectFile, Payloads};
use crate::artifact::format;
use crate::artifact::output::Output;

/// The section's alignment in bytes, for its leading integers and for vectors. The format does not align payloads.
const ALIGN: u64 = 16;

/// A generous bound for headers, symbols and directives, in a file with 32-bit offsets.
const OVERHEAD: u64 = 1 << 16;

/// Marks a section that code doesn't reach with 32-bit offsets (System V ABI for AMD64, table 4.1).
const SHF_X86_64_LARGE: u64 = 0x1000_0000;

pub(super) fn write(
    layout: &Layout,
    payloads: Payloads<'_>,
    prefix: &str,
    target: &Triple,
    path: &Path,
) -> Result<(), PackError> {
    let mut object = format::object_of(target).ok_or_else(|| PackError::Target(target.clone()))?;
    let size = layout.total_len();
    let (name, limit) = match object.format() {
        BinaryFormat::MachO => ("Mach-O", u64::from(u32::MAX) - OVERHEAD),
        BinaryFormat::Coff => ("COFF", u64::from(u32::MAX) - OVERHEAD),
        _ => ("ELF", isize::MAX as u64),
    };
    if size > limit {
        return Err(PackError::TooLarge { format: name, size, limit });
    }
    // The object's writer wants the section's bytes as a slice. It gets a slice of untouched pages, which take no
    // memory. The writer passes the slice to `ObjectFile`, which recognises its address and writes the layout's
    // segments instead.
    let stand_in = stand_in(size)?;
    fill(&mut object, &stand_in, &format!("{prefix}{LIBRARY_BIN}"), target);
    let failed = |source| PackError::Output { path: path.to_owned(), source };
    let mut output = Output::create(path).map_err(failed)?;
    let mut file = ObjectFile::new(output.file(), path, &stand_in, layout, payloads);
    object.emit(&mut file).map_err(|source| PackError::Object { source: Box::new(source) })?;
    file.finish()?;
    output.commit().map_err(failed)
}

fn stand_in(size: u64) -> Result<MmapMut, PackError> {
    let failed = |source| PackError::AddressSpace { size, source };
    let len = usize::try_from(size).map_err(|_| failed(std::io::ErrorKind::OutOfMemory.into()))?;
    MmapOptions::new().len(len).no_reserve_swap().map_anon().map_err(failed)
}

fn fill<'a>(object: &mut Object<'a>, bytes: &'a [u8], symbol: &str, target: &Triple) {
    let section = match (object.format(), object.architecture()) {
        (BinaryFormat::Elf, Architecture::X86_64) => {
            let section = object.add_section(Vec::new(), b".lrodata".to_vec(), SectionKind::ReadOnlyData);
            let sh_flags = u64::from(elf::SHF_ALLOC) | SHF_X86_64_LARGE;
            object.section_mut(section).flags = SectionFlags::Elf { sh_flags };
            section
        }
        _ => object.section_id(StandardSection::ReadOnlyData),
    };
    object.set_section_data(section, bytes, ALIGN);
    object.add_symbol(Symbol {
        name: symbol.into(),
        value: 0,
        size: bytes.len() as u64,
        kind: SymbolKind::Data,
        scope: SymbolScope::Dynamic,
        weak: false,
        section: SymbolSection::Section(section),
        flags: SymbolFlags::None,
    });
    match object.format() {
        // without it, linkers assume an executable stack for the whole program
        BinaryFormat::Elf => {
            object.add_section(Vec::new(), b".note.GNU-stack".to_vec(), SectionKind::Other);
        }
        BinaryFormat::Coff => object.add_coff_exports(format::coff_exports(target)),
        _ => {}
    }
}
