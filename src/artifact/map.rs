//! The contents of regular files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;

/// The minimum size in bytes for mapping a file. A smaller file is read, so another process may truncate it
/// meanwhile. Reading 256 MiB takes about a tenth of a second.
const MAPPED: u64 = 256 << 20;

/// The bytes of a file.
#[derive(Debug)]
pub(super) enum Contents {
    Read(Vec<u8>),
    Mapped(Mmap),
}

impl Deref for Contents {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Contents::Read(bytes) => bytes,
            Contents::Mapped(map) => map,
        }
    }
}

/// The contents of a regular file. A small file is read, and a large one is mapped, so only the accessed parts are
/// read.
pub(super) fn contents(path: &Path) -> io::Result<Contents> {
    contents_of(&open(path)?)
}

/// Like [`contents`], for an open file from its start.
pub(super) fn contents_of(file: &File) -> io::Result<Contents> {
    let size = file.metadata()?.len();
    if size >= MAPPED {
        // SAFETY: the map is private and owned by the returned value. We assume, as linkers do for every file, that
        // no process truncates or writes to so large a file meanwhile.
        return Ok(Contents::Mapped(unsafe { Mmap::map(file) }?));
    }
    let mut bytes = Vec::new();
    // one byte more detects the end without another allocation
    bytes.try_reserve_exact(size as usize + 1).map_err(io::Error::other)?;
    // a file that grows meanwhile is read up to its old size
    file.take(size).read_to_end(&mut bytes)?;
    Ok(Contents::Read(bytes))
}

/// Opens a regular file for reading. Other files are refused without waiting: a FIFO would block until a process
/// writes to it.
pub(super) fn open(path: &Path) -> io::Result<File> {
    // checked before the file is opened, as opening a FIFO or a device may have side effects
    expect_regular(&fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    // the file may have been replaced by another one since the check
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
