//! Checks objects for what LLVM's LLJIT assumes but doesn't check.

use std::collections::BTreeMap;
use std::ops::Range;

use object::{
    Architecture, BinaryFormat, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionFlags,
    SectionIndex, elf,
};

use super::frames::FrameTable;
use super::read::{ObjectFile, is_loaded, refused};
use super::unit::Unit;
use crate::engine::EngineError;

impl Unit<'_> {
    /// Rejects objects that must be loaded below 2 GiB, since LLJIT doesn't load there.
    pub(in crate::engine) fn check_reach(&self) -> Result<(), EngineError> {
        for object in self.objects.iter().filter(|object| object.file.architecture() == Architecture::X86_64) {
            for section in object.file.sections().filter(|section| is_loaded(section.flags())) {
                let low = section.relocations().find_map(|(_, relocation)| match relocation.flags() {
                    RelocationFlags::Elf { r_type: elf::R_X86_64_32 } => Some("R_X86_64_32"),
                    RelocationFlags::Elf { r_type: elf::R_X86_64_32S } => Some("R_X86_64_32S"),
                    _ => None,
                });
                if let Some(name) = low {
                    let section = section.name().unwrap_or_default();
                    let problem = format!(
                        "section `{section}` has a relocation {name}, whose symbol has to be below 2 GiB, and the \
                         backend LLVM loads nothing there; compile as position-independent code (`-fPIC`)"
                    );
                    return Err(refused(&object.label, problem));
                }
            }
        }
        Ok(())
    }

    /// Adds the names of the objects to an error of LLVM's linker.
    pub(in crate::engine) fn blame(&self, error: EngineError) -> EngineError {
        match error {
            EngineError::Link { message } => {
                let labels: Vec<&str> = self.objects.iter().map(|object| object.label.as_str()).collect();
                refused(&labels.join(", "), message)
            }
            other => other,
        }
    }

    /// Rejects objects with unwind tables that libgcc can't read: LLJIT registers tables without checking that. For
    /// other architectures, LLJIT's own checks must suffice.
    pub(in crate::engine) fn check_frames(&self) -> Result<(), EngineError> {
        for object in self.objects.iter().filter(|object| {
            let known = matches!(object.file.architecture(), Architecture::X86_64 | Architecture::Aarch64);
            known && object.file.format() == BinaryFormat::Elf
        }) {
            for section in object.file.sections().filter(|section| section.name() == Ok(".eh_frame")) {
                check_table(object, &section)
                    .map_err(|problem| refused(&object.label, format!("section `.eh_frame` is broken: {problem}")))?;
            }
        }
        Ok(())
    }
}

/// Checks a table whose pointers get their values from relocations.
fn check_table<'d>(object: &ObjectFile<'_>, section: &impl ObjectSection<'d>) -> Result<(), String> {
    let broken = |error: object::Error| error.to_string();
    let read = FrameTable::read(section.data().map_err(broken)?, object.file.architecture())?;
    // maps a field of the table to the section and offset that it refers to
    let mut places: BTreeMap<usize, Option<(SectionIndex, u64)>> = BTreeMap::new();
    for (offset, relocation) in section.relocations() {
        let at = usize::try_from(offset).ok().filter(|at| read.pointers().any(|pointer| pointer.at == *at));
        let at = at.ok_or("a relocation of what is no pointer")?;
        let target = match relocation.target() {
            RelocationTarget::Symbol(symbol) => {
                let symbol = object.file.symbol_by_index(symbol).map_err(broken)?;
                let offset = symbol.address().wrapping_add_signed(relocation.addend());
                symbol.section_index().map(|section| (section, offset))
            }
            _ => None,
        };
        if places.insert(at, target).is_some() {
            return Err("two relocations of one pointer".to_owned());
        }
    }
    let mut functions: Vec<(usize, Range<u64>)> = Vec::new();
    for frame in &read.functions {
        let outside = || "it is about code outside of the object".to_owned();
        let (index, start) = places.get(&frame.start.at).copied().flatten().ok_or_else(outside)?;
        let of = object.file.section_by_index(index).map_err(broken)?;
        let is_code =
            matches!(of.flags(), SectionFlags::Elf { sh_flags } if sh_flags & u64::from(elf::SHF_EXECINSTR) != 0);
        let size = frame.size.read(section.data().map_err(broken)?, 0);
        // a negative size appears as a large number here
        let size = size.filter(|size| i64::try_from(*size).is_ok());
        let end = size.and_then(|size| start.checked_add(size)).ok_or("a function without end")?;
        if !is_code || end > of.size() {
            return Err(outside());
        }
        functions.push((index.0, start..end));
    }
    functions.retain(|(_, function)| !function.is_empty());
    functions.sort_unstable_by_key(|(section, function)| (*section, function.start));
    match functions.windows(2).any(|pair| pair[0].0 == pair[1].0 && pair[1].1.start < pair[0].1.end) {
        true => Err("two functions share code".to_owned()),
        false => Ok(()),
    }
}
