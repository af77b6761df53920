//! AMD code objects: ELF files with a note that describes kernels in MessagePack (LLVM, User Guide for AMDGPU
//! Backend, code object metadata V3 and later).

use std::collections::BTreeSet;
use std::error::Error;

use object::read::elf::{ElfFile64, FileHeader, NoteIterator, ProgramHeader, SectionHeader};
use object::{Endianness, Object, ObjectSymbol};
use rmpv::ValueRef;

use super::amd_target::AmdTarget;
use super::contents::{EntryParam, ImageEntry, ImageKind, Part, Read};
use super::error::ImageError;
use super::target::GpuTarget;
use crate::object_names::Names;

/// The type and the name of the note with the metadata.
const NT_AMDGPU_METADATA: u32 = 32;
const AMDGPU: &[u8] = b"AMDGPU";

/// The maximum MessagePack depth to read; `rmpv` counts two per level. The metadata itself has six levels.
const MOST_DEPTH: usize = 32;

pub(super) fn read(file: &ElfFile64<'_, Endianness>, bytes: &[u8]) -> Result<Read, ImageError> {
    let broken = |problem: String| ImageError::Broken { kind: "code object", problem };
    let (target, entries, tells_all) = match note(file, bytes).map_err(|error| broken(error.to_string()))? {
        Some(metadata) => {
            let (target, entries) = kernels(metadata).map_err(broken)?;
            (target, entries, true)
        }
        // Without metadata, descriptors give the names. Version 2 of code objects, which has the number 0 in the
        // header, has no descriptors.
        None => (None, descriptors(file).map_err(broken)?, file.elf_header().e_ident().abi_version > 0),
    };
    Ok(Read { kind: ImageKind::CodeObject, parts: vec![Part { target, entries }], tells_all })
}

/// The contents of the metadata note. It is searched in the notes of segments, where AMD's loader finds it, and then
/// in those of sections.
fn note<'d>(file: &ElfFile64<'d, Endianness>, bytes: &'d [u8]) -> Result<Option<&'d [u8]>, Box<dyn Error>> {
    let endian = file.endian();
    // bounds the work of reading by the number of bytes, each of which may be in a segment and in a section
    let mut left = 2 * bytes.len() as u64;
    let mut count = |size: u64| left.checked_sub(size).map(|rest| left = rest).ok_or("its notes overlap");
    for segment in file.elf_program_headers() {
        if segment.p_type(endian) == object::elf::PT_NOTE {
            count(segment.p_filesz(endian))?;
        }
        if let Some(notes) = segment.notes(endian, bytes)?
            && let Some(found) = note_among(notes, endian)?
        {
            return Ok(Some(found));
        }
    }
    for section in file.elf_section_table().iter() {
        if section.sh_type(endian) == object::elf::SHT_NOTE {
            count(section.sh_size(endian))?;
        }
        if let Some(notes) = section.notes(endian, bytes)?
            && let Some(found) = note_among(notes, endian)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn note_among<'d>(
    mut notes: NoteIterator<'d, object::elf::FileHeader64<Endianness>>,
    endian: Endianness,
) -> object::Result<Option<&'d [u8]>> {
    while let Some(note) = notes.next()? {
        if note.n_type(endian) == NT_AMDGPU_METADATA && note.name() == AMDGPU {
            return Ok(Some(note.desc()));
        }
    }
    Ok(None)
}

/// The target and the kernels in the metadata.
fn kernels(mut metadata: &[u8]) -> Result<(Option<GpuTarget>, Vec<ImageEntry>), String> {
    let metadata = rmpv::decode::read_value_ref_with_max_depth(&mut metadata, MOST_DEPTH)
        .map_err(|error| format!("its metadata isn't MessagePack: {error}"))?;
    let ValueRef::Map(metadata) = metadata else { return Err("its metadata isn't a map".to_owned()) };
    // Version 3 doesn't state the target.
    let target = item(&metadata, "amdhsa.target").and_then(text).and_then(AmdTarget::behind_triple);
    let kernels = item(&metadata, "amdhsa.kernels").ok_or("its metadata has no `amdhsa.kernels`")?;
    let ValueRef::Array(kernels) = kernels else { return Err("its `amdhsa.kernels` aren't an array".to_owned()) };
    let entries = kernels.iter().enumerate().map(|(number, kernel)| {
        let ValueRef::Map(kernel) = kernel else { return Err(format!("its kernel {number} isn't a map")) };
        entry(kernel).map_err(|problem| format!("its kernel {number} {problem}"))
    });
    Ok((target.map(GpuTarget::Amd), entries.collect::<Result<_, _>>()?))
}

/// The entries of a map.
type Items<'v> = [(ValueRef<'v>, ValueRef<'v>)];

fn entry(kernel: &Items<'_>) -> Result<ImageEntry, String> {
    let name = item(kernel, ".name").and_then(text).ok_or("has no `.name`")?;
    let params = match item(kernel, ".args") {
        None => Vec::new(),
        Some(ValueRef::Array(args)) => params(args)?,
        Some(_) => return Err("has `.args` that aren't an array".to_owned()),
    };
    let required_block = match item(kernel, ".reqd_workgroup_size") {
        None => None,
        Some(ValueRef::Array(extents)) => match &extents[..] {
            [x, y, z] => Some([
                number(x, ".reqd_workgroup_size")?,
                number(y, ".reqd_workgroup_size")?,
                number(z, ".reqd_workgroup_size")?,
            ]),
            extents => return Err(format!("has a `.reqd_workgroup_size` of {} extents, expected 3", extents.len())),
        },
        Some(_) => return Err("has a `.reqd_workgroup_size` that isn't an array".to_owned()),
    };
    Ok(ImageEntry {
        name: name.to_owned(),
        params: Some(params),
        static_shared: number_of(kernel, ".group_segment_fixed_size")?.ok_or("has no `.group_segment_fixed_size`")?,
        registers: number_of(kernel, ".vgpr_count")?,
        required_block,
        is_tile: false,
        max_threads: number_of(kernel, ".max_flat_workgroup_size")?,
        cluster: None,
    })
}

/// The parameters of a launch. The runtime's own parameters, which begin with `hidden_`, come after them and are not
/// included.
fn params(args: &[ValueRef<'_>]) -> Result<Vec<EntryParam>, String> {
    let mut params: Vec<EntryParam> = Vec::new();
    for (at, arg) in args.iter().enumerate() {
        let ValueRef::Map(arg) = arg else { return Err(format!("has an item {at} of `.args` that isn't a map")) };
        let kind = item(arg, ".value_kind").and_then(text);
        let kind = kind.ok_or_else(|| format!("has an item {at} of `.args` without `.value_kind`"))?;
        if kind.starts_with("hidden_") {
            continue;
        }
        let (Some(offset), Some(size)) = (number_of(arg, ".offset")?, number_of(arg, ".size")?) else {
            return Err(format!("has an item {at} of `.args` without `.offset` and `.size`"));
        };
        let after = params.last().map_or(Some(0), |last| last.offset.checked_add(last.size));
        if after.is_none_or(|after| offset < after) || offset.checked_add(size).is_none() {
            return Err(format!("has an item {at} of `.args` at offset {offset}, which isn't behind the one before"));
        }
        params.push(EntryParam { offset, size });
    }
    Ok(params)
}

/// The value of a key in a map.
fn item<'m, 'v>(map: &'m Items<'v>, key: &str) -> Option<&'m ValueRef<'v>> {
    map.iter().find(|(name, _)| text(name) == Some(key)).map(|(_, value)| value)
}

fn text<'v>(value: &ValueRef<'v>) -> Option<&'v str> {
    match value {
        ValueRef::String(text) => text.into_str(),
        _ => None,
    }
}

/// The number stored under a key, if the map has the key.
fn number_of(map: &Items<'_>, key: &str) -> Result<Option<u32>, String> {
    item(map, key).map(|value| number(value, key)).transpose()
}

fn number(value: &ValueRef<'_>, key: &str) -> Result<u32, String> {
    let number = match value {
        ValueRef::Integer(number) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
        _ => None,
    };
    number.ok_or_else(|| format!("has a `{key}` that isn't a 32-bit number"))
}

/// The kernels found from their descriptors, `<name>.kd`.
fn descriptors(file: &ElfFile64<'_, Endianness>) -> Result<Vec<ImageEntry>, String> {
    let mut read = Names::of_file(file.data().len());
    let mut names = BTreeSet::new();
    for symbol in file.dynamic_symbols().chain(file.symbols()) {
        let Ok(name) = symbol.name() else { continue };
        read.count(name.as_bytes())?;
        names.extend(name.strip_suffix(".kd").map(str::to_owned));
    }
    Ok(names.into_iter().map(|name| ImageEntry { name, ..ImageEntry::default() }).collect())
}
