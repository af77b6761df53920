//! Output files that are written completely or not at all.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::{Builder, NamedTempFile, TempDir};

/// The temporary files and directories of outputs that are neither committed nor dropped. They are created and moved
/// under this lock, so its holder knows all of them.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    // a panic can't leave a set of paths half-changed
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Proof that this process has no unfinished outputs, returned by [`remove_unfinished_outputs`]. While it exists,
/// threads that begin or commit an output wait.
#[derive(Debug)]
#[must_use = "outputs may be begun again as soon as this is dropped"]
pub struct NoUnfinishedOutputs {
    _unfinished: MutexGuard<'static, BTreeSet<PathBuf>>,
}

/// Removes the temporary files and directories of all outputs that this process is currently writing. Call this in a
/// program that is about to end early.
///
/// An object, library or archive is written to a temporary file (`.tvm-ffi-...`) next to its final path. The
/// temporary file is removed after an error or a panic, but not when a signal ends the process. A program that
/// catches such a signal calls this function before it ends. Call it from a thread and not from the signal handler,
/// as it locks and allocates. This library has no signal handlers of its own.
///
/// After the returned value is dropped, continuing to write is an error because the temporary file no longer exists.
/// ```
/// use tvm_ffi_codegen::artifact::remove_unfinished_outputs;
///
/// // in the thread that waits for signals
/// let none = remove_unfinished_outputs();
/// // end the process here, with `none` alive
/// # drop(none);
/// ```
pub fn remove_unfinished_outputs() -> NoUnfinishedOutputs {
    /// A linker that still runs may add a file to a directory while it is being removed.
    const TRIES: usize = 10;

    let mut unfinished = unfinished();
    for path in std::mem::take(&mut *unfinished) {
        // a file that can't be removed stays: a process that is ending can't report it
        let _ = match path.is_dir() {
            true => (0..TRIES).map(|_| fs::remove_dir_all(&path)).find(Result::is_ok).unwrap_or(Ok(())),
            false => fs::remove_file(&path),
        };
    }
    NoUnfinishedOutputs { _unfinished: unfinished }
}

/// An entry of [`UNFINISHED`], which is removed with this value.
struct Unfinished(PathBuf);

impl Unfinished {
    fn enter(mut all: MutexGuard<'_, BTreeSet<PathBuf>>, path: &Path) -> Self {
        all.insert(path.to_owned());
        Self(path.to_owned())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        unfinished().remove(&self.0);
    }
}

/// A file that is written next to its final path and then moved there. If it is dropped before that, nothing is left.
pub(super) struct Output {
    temp: NamedTempFile,
    place: PathBuf,
    // dropped after the file, so the entry exists as long as the file
    entry: Unfinished,
}

impl Output {
    /// Begins the output file for `path`.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let place = place(path)?;
        let all = unfinished();
        let temp = file_builder().tempfile_in(folder(&place))?;
        let entry = Unfinished::enter(all, temp.path());
        Ok(Self { temp, place, entry })
    }

    pub(super) fn file(&mut self) -> &mut File {
        self.temp.as_file_mut()
    }

    /// Moves the file to its final path and replaces an existing file.
    pub(super) fn commit(self) -> io::Result<()> {
        let Self { temp, place, entry } = self;
        let mut all = unfinished();
        let moved = temp.persist(&place).map(drop).map_err(|error| not_replaced(&place, error.error));
        all.remove(&entry.0);
        drop(all);
        moved
    }
}

/// A directory for a tool that writes its own output, next to the output's final path.
pub(super) struct OutputFolder {
    folder: TempDir,
    place: PathBuf,
    // dropped after the directory, so the entry exists as long as the directory
    _entry: Unfinished,
}

impl OutputFolder {
    /// Begins the output file for `path`.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let place = place(path)?;
        let all = unfinished();
        let folder = builder().tempdir_in(folder(&place))?;
        let entry = Unfinished::enter(all, folder.path());
        Ok(Self { folder, place, _entry: entry })
    }

    /// The directory, which is removed with this value.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The path that the tool must write to: a file with the final name.
    pub(super) fn file(&self) -> PathBuf {
        self.folder.path().join(self.place.file_name().unwrap_or_default())
    }

    /// Whether the tool has written the file.
    pub(super) fn is_written(&self) -> bool {
        self.file().is_file()
    }

    /// Moves that file to its final path.
    pub(super) fn commit(self) -> io::Result<()> {
        let _all = unfinished();
        fs::rename(self.file(), &self.place).map_err(|error| not_replaced(&self.place, error))
    }
}

/// The error for a file that couldn't be moved to its final path. Windows doesn't replace a file that is in use, and
/// its own message doesn't say so.
fn not_replaced(place: &Path, error: io::Error) -> io::Error {
    if !cfg!(windows) || !place.exists() {
        return error;
    }
    let why = "a library that is loaded, or a file that is open, is in use, and Windows doesn't replace it";
    io::Error::new(error.kind(), format!("the existing file stays, because it can't be replaced ({why}): {error}"))
}

fn builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(".tvm-ffi-");
    builder
}

/// Like [`builder`], with permissions set by the umask as for any new file.
#[cfg(unix)]
fn file_builder() -> Builder<'static, 'static> {
    let mut builder = builder();
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder
}

#[cfg(not(unix))]
fn file_builder() -> Builder<'static, 'static> {
    builder()
}

/// The file that a path refers to, possibly through a link. Moving a file over a device, a pipe or a directory would
/// replace it, or fail late.
fn place(path: &Path) -> io::Result<PathBuf> {
    if path.file_name().is_none() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it names no file"));
    }
    match fs::metadata(path) {
        Ok(there) if there.is_file() => fs::canonicalize(path),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "it exists and isn't a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(error) => Err(error),
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
