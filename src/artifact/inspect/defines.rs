//! A look-up of a symbol in files to link.

use std::path::Path;

use object::File;
use object::read::archive::ArchiveFile;

use super::InspectError;
use super::names::Names;
use super::symbols::Symbols;
use crate::artifact::map::map;

/// Whether an object, a shared library or a member of an archive defines an exported symbol of that C name. A file of another kind, such as a linker's
/// script, defines none; nor does a member for a compiler's own use.
///
/// # Errors
/// The file can't be read, or isn't regular.
pub fn defines_symbol(path: impl AsRef<Path>, symbol: &str) -> Result<bool, InspectError> {
    let path = path.as_ref();
    let mapped = map(path).map_err(|source| InspectError::Io { path: path.to_owned(), source })?;
    let Ok(archive) = ArchiveFile::parse(&*mapped) else { return Ok(object_defines(&mapped, symbol)) };
    let mut members = archive.members().flatten().filter_map(|member| member.data(&*mapped).ok());
    Ok(members.any(|member| object_defines(member, symbol)))
}

fn object_defines(bytes: &[u8], symbol: &str) -> bool {
    let Ok(file) = File::parse(bytes) else { return false };
    Symbols::read(&file, &mut Names::of_file(bytes.len())).is_ok_and(|symbols| symbols.defines(symbol))
}
