//! The file that marks a directory as a cache. Files are only removed in marked directories.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::Path;

use super::folder::{Folder, refused};
use super::names::{UNFINISHED, is_unfinished};

/// The file's name. Backup programs use it to skip the directory (Cache Directory Tagging Specification).
const NAME: &str = "CACHEDIR.TAG";

/// The file's contents. The specification requires the first line; the second line distinguishes this library's
/// caches from others.
const CONTENTS: &str = "Signature: 8a477f597d28d172789f06886806bc55\n\
                        # A cache of tvm-ffi-codegen, which removes files of its own here.\n";

/// Whether the directory is marked.
pub(super) fn is_marked(folder: &Folder) -> bool {
    let mut contents = Vec::new();
    // read one byte more to notice a longer file
    let limit = CONTENTS.len() as u64 + 1;
    let read = folder.file(OsStr::new(NAME)).and_then(|file| file.take(limit).read_to_end(&mut contents));
    read.is_ok() && contents == CONTENTS.as_bytes()
}

/// Marks an empty directory, unless it is already marked.
///
/// # Errors
/// The directory isn't empty, or can't be written to.
pub(super) fn mark(folder: &Folder, path: &Path) -> io::Result<()> {
    if is_marked(folder) {
        return Ok(());
    }
    // another process may be marking the directory too
    if let Some(foreign) = folder.names()?.iter().find(|name| !is_unfinished(name)) {
        if is_marked(folder) {
            return Ok(());
        }
        return Err(refused(format!(
            "expected an empty folder, or one that is marked as a cache by its `{NAME}`: it has {foreign:?}"
        )));
    }
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(path)?;
    file.write_all(CONTENTS.as_bytes())?;
    // An artifact that loses its end with the machine's power is noticed by its hash. A mark isn't: its directory would
    // be refused from then on.
    file.as_file().sync_all()?;
    match file.persist_noclobber(path.join(NAME)) {
        Ok(_) => Ok(()),
        Err(_) if is_marked(folder) => Ok(()),
        Err(error) => Err(error.error),
    }
}
