//! Output files that are there wholly or not at all.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile, TempDir};

/// A file that is written beside its place and moved there in the end. Dropped before, it leaves nothing.
pub(super) struct Output {
    temp: NamedTempFile,
    place: PathBuf,
}

impl Output {
    /// Begins a file at `path`.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let place = place(path)?;
        let mut builder = builder();
        // as for any other new file, the umask has its say
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        Ok(Self { temp: builder.tempfile_in(folder(&place))?, place })
    }

    pub(super) fn file(&mut self) -> &mut File {
        self.temp.as_file_mut()
    }

    /// Moves the file to its place, where it replaces what was there.
    pub(super) fn commit(self) -> io::Result<()> {
        self.temp.persist(&self.place).map(drop).map_err(|error| error.error)
    }
}

/// A folder for a tool that writes its own output, beside the place where that goes.
pub(super) struct OutputFolder {
    folder: TempDir,
    place: PathBuf,
}

impl OutputFolder {
    /// Begins a file at `path`.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let place = place(path)?;
        Ok(Self { folder: builder().tempdir_in(folder(&place))?, place })
    }

    /// The folder, which goes away with this value.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Where the tool shall write: a file of the final name.
    pub(super) fn file(&self) -> PathBuf {
        self.folder.path().join(self.place.file_name().unwrap_or_default())
    }

    /// Moves that file to its place.
    pub(super) fn commit(self) -> io::Result<()> {
        fs::rename(self.file(), &self.place)
    }
}

fn builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(".tvm-ffi-");
    builder
}

/// Where a path leads, which may be through a link. Moving a file over a device, a pipe or a folder would replace it, or fail late.
fn place(path: &Path) -> io::Result<PathBuf> {
    if path.file_name().is_none() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it names no file"));
    }
    match fs::metadata(path) {
        Ok(there) if there.is_file() => fs::canonicalize(path),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is there, and is no regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(error) => Err(error),
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
