//! Reads debug information about loaded code from its ELF object file.

use std::collections::HashMap;

use gimli::{DebugLine, EndianSlice, NativeEndian};
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolKind};

use super::described::{Described, Locations};
use crate::backend::Lines;
use crate::ir::LocationRef;

/// The loaded code section, and its functions.
pub(in crate::engine) struct Contents {
    pub(in crate::engine) start: usize,
    pub(in crate::engine) size: usize,
    pub(in crate::engine) functions: Vec<Described>,
}

/// Reads an object with one code section, from the known address of a function. `None` if there is no such section.
pub(in crate::engine) fn contents(
    object: &[u8],
    locations: &Locations,
    known: &[(Box<str>, usize)],
) -> Option<Contents> {
    let file = object::File::parse(object).ok()?;
    let text = file.section_by_name(".text")?;
    let inside = || file.symbols().filter(|symbol| symbol.section_index() == Some(text.index()));
    let start = inside().find_map(|symbol| {
        let name = symbol.name().ok()?;
        let (_, address) = known.iter().find(|(known, _)| **known == *name)?;
        address.checked_sub(symbol.address() as usize)
    })?;
    let lines = lines(&file, locations).unwrap_or_default();
    let mut functions = Vec::new();
    for symbol in inside().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0) {
        let (begin, size) = (symbol.address(), symbol.size());
        let end = begin + size;
        let clip = |at: u64| (at.clamp(begin, end) - begin) as u32;
        let own = lines.iter().map(|&(from, to, location)| Lines { start: clip(from), end: clip(to), location });
        let lines: Vec<Lines> = own.filter(|lines| lines.start < lines.end).collect();
        functions.push(Described {
            name: symbol.name().ok()?.to_owned(),
            address: start + begin as usize,
            size: size as usize,
            first: lines.first().map(|lines| lines.location),
            lines,
        });
    }
    Some(Contents { start, size: text.size() as usize, functions })
}

/// Code ranges with source locations, in address order, relative to the section.
fn lines(file: &object::File<'_>, locations: &Locations) -> Option<Vec<(u64, u64, LocationRef)>> {
    let known: HashMap<(&str, u32), LocationRef> =
        locations.iter().rev().map(|(location, at)| ((&*at.file, at.line), location)).collect();
    let bytes = relocated(file, ".debug_line")?;
    let section = DebugLine::new(&bytes, NativeEndian);
    let program = section.program(gimli::DebugLineOffset(0), 8, None, None).ok()?;
    let mut rows = program.rows();
    let mut lines = Vec::new();
    let mut open: Option<(u64, LocationRef)> = None;
    while let Some((header, row)) = rows.next_row().ok()? {
        if let Some((from, location)) = open.take().filter(|(from, _)| *from < row.address()) {
            lines.push((from, row.address(), location));
        }
        if row.end_sequence() {
            continue;
        }
        let path = row.file(header).and_then(|file| path(header, file));
        let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
        let location = path.zip(line).and_then(|(path, line)| known.get(&(&*path, line)).copied());
        open = location.map(|location| (row.address(), location));
    }
    lines.sort_unstable_by_key(|(from, ..)| *from);
    Some(lines)
}

/// The path of a file as in the module: LLVM splits off the directory.
fn path(
    header: &gimli::LineProgramHeader<EndianSlice<'_, NativeEndian>>,
    file: &gimli::FileEntry<EndianSlice<'_, NativeEndian>>,
) -> Option<String> {
    let text = |value: gimli::AttributeValue<EndianSlice<'_, NativeEndian>>| match value {
        gimli::AttributeValue::String(text) => std::str::from_utf8(text.slice()).ok().map(str::to_owned),
        _ => None,
    };
    let name = text(file.path_name())?;
    let folder = match file.directory_index() {
        0 => None,
        _ => file.directory(header).and_then(text),
    };
    Some(match folder {
        Some(folder) if folder.ends_with('/') => folder + &name,
        Some(folder) => format!("{folder}/{name}"),
        None => name,
    })
}

/// The contents of a section, relocated as if the object were loaded at 0.
fn relocated(file: &object::File<'_>, name: &str) -> Option<Vec<u8>> {
    let section = file.section_by_name(name)?;
    let mut bytes = section.data().ok()?.to_vec();
    for (offset, relocation) in section.relocations() {
        let RelocationTarget::Symbol(target) = relocation.target() else { return None };
        let address = file.symbol_by_index(target).ok()?.address();
        let value = address.wrapping_add_signed(relocation.addend()).to_ne_bytes();
        let size = usize::from(relocation.size()) / 8;
        let place = bytes.get_mut(offset as usize..offset as usize + size)?;
        match cfg!(target_endian = "little") {
            true => place.copy_from_slice(&value[..size]),
            false => place.copy_from_slice(&value[8 - size..]),
        }
    }
    Some(bytes)
}
