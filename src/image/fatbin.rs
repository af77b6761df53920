//! Fatbins: cubins and PTX for several architectures with one header.

use super::contents::{ImageKind, Part, Read};
use super::error::ImageError;
use super::target::{ArchFeatures, CudaTarget, GpuTarget};
use super::{elf, ptx};

/// The first word of a fatbin's contents.
const MAGIC: u32 = 0xba55_ed50;
/// The kinds of elements that have kernels.
const PTX: u16 = 1;
const CUBIN: u16 = 2;

/// Flags of an element.
mod flag {
    /// The payload is compressed with LZ4 or Zstandard.
    pub(super) const COMPRESSED: u64 = 0x2000 | 0x8000;
    /// The code has features of one architecture (`sm_90a`) or of a family (`sm_100f`).
    pub(super) const OF_ARCHITECTURE: u64 = 0x10_0000;
    pub(super) const OF_FAMILY: u64 = 0x20_0000;
}

/// Reads a fatbin's architectures and the kernels of its uncompressed elements. By default NVIDIA's tools compress
/// PTX and leave cubins uncompressed.
pub(super) fn read(bytes: &[u8]) -> Result<Read, ImageError> {
    let broken = |problem: &str| ImageError::Broken { kind: "fatbin", problem: problem.to_owned() };
    let half = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    if word(0) != Some(MAGIC) {
        return Err(broken("it is the wrapper, which holds the address of the contents; give the contents"));
    }
    let cut = || broken("it ends before its contents do");
    let header = usize::from(half(6).ok_or_else(cut)?);
    let size = usize::try_from(long(8).ok_or_else(cut)?).map_err(|_| cut())?;
    let end = header.checked_add(size).filter(|end| *end <= bytes.len()).ok_or_else(cut)?;
    let (mut at, mut parts, mut tells_all) = (header, Vec::new(), true);
    while at < end {
        // kind, version, size of the element's header, size of its payload, ..., architecture at 28, flags at 40
        let kind = half(at).ok_or_else(cut)?;
        let header = word(at + 4).ok_or_else(cut)?;
        let payload = long(at + 8).ok_or_else(cut)?;
        let capability = word(at + 28).ok_or_else(cut)?;
        let flags = long(at + 40).ok_or_else(cut)?;
        let next = u64::from(header).checked_add(payload).and_then(|bytes| usize::try_from(bytes).ok());
        let next = next.filter(|bytes| *bytes > 0).and_then(|bytes| at.checked_add(bytes)).ok_or_else(cut)?;
        if matches!(kind, PTX | CUBIN) {
            let features = match (flags & flag::OF_ARCHITECTURE, flags & flag::OF_FAMILY) {
                (0, 0) => ArchFeatures::Portable,
                (0, _) => ArchFeatures::Family,
                _ => ArchFeatures::Architecture,
            };
            let target = GpuTarget::Cuda(CudaTarget { capability, features, is_virtual: kind == PTX });
            let code = bytes.get(at + header as usize..next).filter(|_| flags & flag::COMPRESSED == 0);
            let read = code.and_then(|code| element(kind, code));
            tells_all &= read.is_some();
            let entries = read.into_iter().flat_map(Read::into_entries).collect();
            parts.push(Part { target: Some(target), entries });
        }
        at = next;
    }
    if at != end {
        return Err(cut());
    }
    Ok(Read { kind: ImageKind::Fatbin, parts, tells_all })
}

/// The contents of an element. `None` if they can't be read; then the driver decides.
fn element(kind: u16, code: &[u8]) -> Option<Read> {
    match kind {
        CUBIN => elf::read(code).ok().filter(|read| read.kind == ImageKind::Cubin),
        _ => {
            let end = code.iter().rposition(|byte| *byte != 0)?;
            ptx::read(&code[..=end]).ok()
        }
    }
}
