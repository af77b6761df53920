//! Looks a symbol up in files to link.

use std::path::Path;

use object::File;
use object::read::archive::ArchiveFile;

use super::binary::InspectError;
use super::symbols::SymbolTable;
use crate::artifact::map::contents;
use crate::object_names::Names;

/// Whether an object, a shared library or a member of an archive defines an exported symbol with that C name. Files
/// of other kinds, such as linker scripts, define none, and neither do an archive's special members.
///
/// # Errors
/// The file can't be read, or isn't regular.
pub fn defines_symbol(path: impl AsRef<Path>, symbol: &str) -> Result<bool, InspectError> {
    let path = path.as_ref();
    let mapped = contents(path).map_err(|source| InspectError::Io { path: path.to_owned(), source })?;
    let Ok(archive) = ArchiveFile::parse(&*mapped) else { return Ok(object_defines(&mapped, symbol)) };
    let mut members = archive.members().flatten().filter_map(|member| member.data(&*mapped).ok());
    Ok(members.any(|member| object_defines(member, symbol)))
}

fn object_defines(bytes: &[u8], symbol: &str) -> bool {
    let Ok(file) = File::parse(bytes) else { return false };
    SymbolTable::read(&file, &mut Names::of_file(bytes.len())).is_ok_and(|symbols| symbols.defines(symbol))
}
