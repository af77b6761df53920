//! Files as slices.

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

/// Maps a regular file. Of a large one only what is looked at is read.
pub(super) fn map(path: &Path) -> io::Result<Mmap> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "expected a regular file"));
    }
    // SAFETY: the map is of its own, and private. What is taken on trust, as by every linker: that nobody writes the file meanwhile.
    unsafe { Mmap::map(&file) }
}
