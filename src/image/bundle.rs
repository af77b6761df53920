//! Bundles of AMD code objects for several architectures (Clang Offload Bundler, bundled binary file layout).

use std::sync::Arc;

use super::amd_target::AmdTarget;
use super::contents::{ImageKind, Part, Read};
use super::elf;
use super::error::ImageError;
use super::target::GpuTarget;

/// The first bytes of a bundle.
pub(super) const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";

/// Reads the entries for AMD devices and skips those for the host.
pub(super) fn read(bytes: &[u8]) -> Result<Read, ImageError> {
    let broken = |problem: String| ImageError::Broken { kind: "bundle", problem };
    let cut = || broken("it ends before its contents do".to_owned());
    let mut rest = bytes.strip_prefix(MAGIC).ok_or_else(cut)?;
    let (mut parts, mut tells_all, mut total) = (Vec::new(), true, 0_usize);
    for _ in 0..number(&mut rest).ok_or_else(cut)? {
        let (offset, size) = (number(&mut rest).ok_or_else(cut)?, number(&mut rest).ok_or_else(cut)?);
        let id = number(&mut rest).and_then(|length| usize::try_from(length).ok());
        let (id, behind) = id.and_then(|length| rest.split_at_checked(length)).ok_or_else(cut)?;
        rest = behind;
        let id = std::str::from_utf8(id).map_err(|_| broken("the id of an entry isn't text".to_owned()))?;
        if id.starts_with("host") {
            continue;
        }
        let code = contents(bytes, offset, size).ok_or_else(cut)?;
        // bounds the work of reading by the number of bytes
        total = total.saturating_add(code.len());
        if total > bytes.len() {
            return Err(broken("its entries overlap".to_owned()));
        }
        // the driver decides on code without a specific processor, such as SPIR-V
        if !id.contains("-gfx") {
            tells_all = false;
            continue;
        }
        // the ELF reader needs aligned files, and clang-offload-bundler aligns entries only on request
        let copy: Arc<[u8]>;
        let code = match code.as_ptr().cast::<u64>().is_aligned() {
            true => code,
            false => {
                copy = Arc::from(code);
                &copy[..]
            }
        };
        let read = elf::read(code).map_err(|error| broken(format!("in its entry `{id}`, {error}")))?;
        if read.kind != ImageKind::CodeObject {
            return Err(broken(format!("its entry `{id}` is a {}", read.kind)));
        }
        tells_all &= read.tells_all;
        // if the code object doesn't state its target, the id does
        let target = AmdTarget::behind_triple(id).map(GpuTarget::Amd);
        parts.extend(read.parts.into_iter().map(|part| Part { target: part.target.or(target), ..part }));
    }
    if parts.is_empty() && tells_all {
        return Err(broken("it has no code for a device".to_owned()));
    }
    Ok(Read { kind: ImageKind::CodeObject, parts, tells_all })
}

/// The next 64-bit number.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let (number, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(u64::from_le_bytes(*number))
}

fn contents(bytes: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    let (offset, size) = (usize::try_from(offset).ok()?, usize::try_from(size).ok()?);
    bytes.get(offset..offset.checked_add(size)?)
}
