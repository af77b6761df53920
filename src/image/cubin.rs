//! Cubins: NVIDIA's ELF files, whose `.nv.info` sections describe kernels.

use std::collections::HashMap;

use object::read::elf::{ElfFile64, FileHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SymbolFlags, elf};

use super::contents::{EntryParam, ImageEntry, ImageKind, Read};
use super::error::ImageError;
use super::target::{ArchFeatures, CudaTarget, GpuTarget};
use crate::object_names::Names;

/// The flag of a kernel's symbol, `STO_CUDA_ENTRY`.
const ENTRY: u8 = 0x10;

/// The shared memory per block that the system reserves, in bytes (CUDA C++ Programming Guide, compute capability
/// 9.0). The limits of architectures don't include it.
const SYSTEM_SHARED: u32 = 1024;

/// The number of the language of tile kernels in cubins and PTX (`cuobjdump -elf` shows it as `TILEIR`).
pub(super) const TILE_IR: u32 = 7;

/// Attributes of `.nv.info` (`EIATTR_*`).
mod attribute {
    pub(super) const MAX_THREADS: u8 = 0x05;
    pub(super) const REQNTID: u8 = 0x10;
    pub(super) const KPARAM_INFO: u8 = 0x17;
    pub(super) const REGCOUNT: u8 = 0x2f;
    pub(super) const CTA_PER_CLUSTER: u8 = 0x3d;
    pub(super) const LANGUAGE: u8 = 0x66;
}

pub(super) fn read(file: &ElfFile64<'_, Endianness>) -> Result<Read, ImageError> {
    let broken = |problem: &str| ImageError::Broken { kind: "cubin", problem: problem.to_owned() };
    let header = file.elf_header();
    let target = target(header.e_flags(file.endian()), header.e_ident().abi_version);
    let mut names = Names::of_file(file.data().len());
    let mut entries: Vec<ImageEntry> = Vec::new();
    let (mut by_symbol, mut by_name) = (HashMap::new(), HashMap::new());
    for symbol in file.symbols() {
        let SymbolFlags::Elf { st_info, st_other } = symbol.flags() else { continue };
        if st_info & 0xf != elf::STT_FUNC || st_other & ENTRY == 0 || symbol.is_undefined() {
            continue;
        }
        let Ok(name) = symbol.name() else { continue };
        names.count(name.as_bytes()).map_err(|problem| broken(&problem))?;
        by_symbol.insert(symbol.index().0 as u32, entries.len());
        by_name.entry(name).or_insert(entries.len());
        entries.push(ImageEntry { name: name.to_owned(), ..ImageEntry::default() });
    }
    let mut sections = Vec::new();
    for section in file.sections() {
        let Ok(name) = section.name() else { continue };
        names.count(name.as_bytes()).map_err(|problem| broken(&problem))?;
        sections.push((name, section));
    }
    // if the system reserves shared memory, each kernel's size includes it
    let reserved = if sections.iter().any(|(name, _)| *name == ".nv.shared.reserved.0") { SYSTEM_SHARED } else { 0 };
    // bounds the work of reading by the number of bytes
    let mut left = file.data().len();
    let mut count = |data: &[u8]| left.checked_sub(data.len()).map(|rest| left = rest).ok_or("its sections overlap");
    let unreadable = |error: object::Error| broken(&error.to_string());
    for (name, section) in &sections {
        if *name == ".nv.info" {
            let data = section.data().map_err(unreadable)?;
            count(data).map_err(broken)?;
            for (id, value) in attributes(data) {
                if let (attribute::REGCOUNT, [symbol, registers, ..]) = (id, &words(value)[..])
                    && let Some(at) = by_symbol.get(symbol)
                {
                    entries[*at].registers = Some(*registers);
                }
            }
        } else if let Some(at) = name.strip_prefix(".nv.info.").and_then(|name| by_name.get(name)) {
            let data = section.data().map_err(unreadable)?;
            count(data).map_err(broken)?;
            kernel(&mut entries[*at], data).map_err(|problem| broken(&problem))?;
        } else if let Some(at) = name.strip_prefix(".nv.shared.").and_then(|name| by_name.get(name)) {
            let bytes = u32::try_from(section.size()).unwrap_or(u32::MAX);
            entries[*at].static_shared = bytes.saturating_sub(reserved);
        }
    }
    Ok(Read::of_one(ImageKind::Cubin, Some(GpuTarget::Cuda(target)), entries))
}

/// The architecture from the flags of a cubin's header. Version 8 of the ABI stores them elsewhere.
fn target(flags: u32, abi_version: u8) -> CudaTarget {
    let (capability, own) = match abi_version {
        ..8 => (flags & 0xff, flags & 0x800 != 0),
        8.. => (flags >> 8 & 0xff, flags & 0x8 != 0),
    };
    let features = if own { ArchFeatures::Architecture } else { ArchFeatures::Portable };
    CudaTarget { capability, features, is_virtual: false }
}

/// Reads the attributes in `.nv.info.<kernel>`.
fn kernel(entry: &mut ImageEntry, data: &[u8]) -> Result<(), String> {
    let mut params = Vec::new();
    for (id, value) in attributes(data) {
        let words = words(value);
        match (id, &words[..]) {
            // ordinal and offset, of 16 bits each; the size is in the upper 14 bits of the last word
            (attribute::KPARAM_INFO, [_, place, info]) => {
                params.push((place & 0xffff, EntryParam { offset: place >> 16, size: info >> 18 }));
            }
            (attribute::REQNTID, [x, y, z]) => entry.required_block = Some([*x, *y, *z]),
            (attribute::LANGUAGE, [language]) => entry.is_tile = *language == TILE_IR,
            (attribute::CTA_PER_CLUSTER, [x, y, z]) => entry.cluster = Some([*x, *y, *z]),
            (attribute::MAX_THREADS, [x, y, z]) => {
                entry.max_threads = x.checked_mul(*y).and_then(|xy| xy.checked_mul(*z));
            }
            _ => {}
        }
    }
    params.sort_by_key(|(ordinal, _)| *ordinal);
    if params.iter().zip(0..).any(|((ordinal, _), number)| *ordinal != number) {
        return Err(format!("the parameters of `{}` have ordinals that are not 0 to {}", entry.name, params.len()));
    }
    entry.params = Some(params.into_iter().map(|(_, param)| param).collect());
    Ok(())
}

/// The attributes of an `.nv.info` section, each with its value. An attribute is a format, an id, and 16 bits, which
/// are the value itself or the number of bytes that follow. A truncated attribute is skipped.
fn attributes(mut data: &[u8]) -> Vec<(u8, &[u8])> {
    const SIZED: u8 = 4;
    let mut found = Vec::new();
    while let [format, id, low, high, rest @ ..] = data {
        let size = if *format == SIZED { usize::from(u16::from_le_bytes([*low, *high])) } else { 0 };
        let Some((value, rest)) = rest.split_at_checked(size) else { break };
        found.push((*id, value));
        // attributes are aligned to 4 bytes
        data = rest.get(size.next_multiple_of(4) - size..).unwrap_or_default();
    }
    found
}

fn words(value: &[u8]) -> Vec<u32> {
    value.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}
