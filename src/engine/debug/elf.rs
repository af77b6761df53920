//! Section addresses in an object file. A debugger computes all other addresses from these.

use object::elf::{SHF_ALLOC, SectionHeader64};
use object::read::elf::{ElfFile64, FileHeader as _};
use object::{Endianness, Object, ObjectSection, U64, pod};

use crate::engine::error::EngineError;

/// Sets the addresses of sections by name. `of` also says whether a section is loaded there; the address of one that
/// isn't is arbitrary.
pub(in crate::engine) fn place(
    bytes: &mut [u8],
    of: impl Fn(&str) -> Option<(usize, bool)>,
) -> Result<(), EngineError> {
    let malformed = |e: object::Error| EngineError::internal(format!("an object that can't be read: {e}"));
    let file = ElfFile64::<Endianness>::parse(&*bytes).map_err(malformed)?;
    let endian = file.endian();
    let headers = file.elf_header().e_shoff(endian) as usize;
    let mut places = Vec::new();
    for section in file.sections() {
        if let Some(place) = of(section.name().map_err(malformed)?) {
            places.push((headers + section.index().0 * size_of::<SectionHeader64<Endianness>>(), place));
        }
    }
    for (at, (address, loaded)) in places {
        let missing = || EngineError::internal("an object lacks a section");
        let header = bytes.get_mut(at..).ok_or_else(missing)?;
        let (header, _) = pod::from_bytes_mut::<SectionHeader64<Endianness>>(header).map_err(|()| missing())?;
        header.sh_addr = U64::new(endian, address as u64);
        let flags = header.sh_flags.get(endian);
        let alloc = u64::from(SHF_ALLOC);
        header.sh_flags = U64::new(endian, if loaded { flags | alloc } else { flags & !alloc });
    }
    Ok(())
}
