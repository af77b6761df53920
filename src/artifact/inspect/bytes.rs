//! The bytes at a symbol.

use object::{File, Object, ObjectSection, ObjectSegment};

use super::symbols::SymbolLocation;

/// The bytes from a place to the end of its section, or of its segment in a linked file without sections.
pub(super) fn from<'data>(file: &File<'data>, place: SymbolLocation) -> Option<&'data [u8]> {
    let address = place.address;
    let inside = |start: u64, size: u64| address >= start && address - start < size;
    let here = |section: &object::Section<'data, '_>| match place.section {
        Some(index) => section.index() == index,
        None => inside(section.address(), section.size()),
    };
    let in_section = file.sections().find(here).and_then(|section| {
        let left = section.size().checked_sub(address.checked_sub(section.address())?)?;
        section.data_range(address, left).ok()?
    });
    in_section.or_else(|| {
        let segment = file.segments().find(|segment| inside(segment.address(), segment.size()))?;
        let data = segment.data().ok()?;
        data.get(usize::try_from(address - segment.address()).ok()?..)
    })
}
