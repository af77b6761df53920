//! Regular files, opened and mapped.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use memmap2::Mmap;

/// Maps a regular file. Of a large file only the parts that are looked at are read.
pub(super) fn map(path: &Path) -> io::Result<Mmap> {
    let file = open(path)?;
    // SAFETY: the map is private and of its own. Taken on trust, as every linker does: nobody writes to the file meanwhile.
    unsafe { Mmap::map(&file) }
}

/// Opens a regular file for reading. Anything else is refused and not waited for: a FIFO would block until somebody writes to it.
pub(super) fn open(path: &Path) -> io::Result<File> {
    // before the file is opened, as opening a FIFO or a device may have effects
    expect_regular(&fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    // another file may have taken the place of the first one
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path)?;
    expect_regular(&file.metadata()?)?;
    Ok(file)
}

fn expect_regular(metadata: &fs::Metadata) -> io::Result<()> {
    match metadata.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "expected a regular file")),
    }
}
