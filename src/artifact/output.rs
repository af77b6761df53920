//! Output files that are written wholly or not at all.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::{Builder, NamedTempFile, TempDir};

/// The temporary files and folders of the outputs that are neither finished nor given up. They are made and moved to their places under this lock,
/// so that its holder knows all of them.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    // a set of paths is whole whatever panicked
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state in which this process has no unfinished outputs, made by [`remove_unfinished_outputs`]. Until it is dropped, whoever begins or finishes an
/// output waits.
#[derive(Debug)]
#[must_use = "outputs may be begun again as soon as this is dropped"]
pub struct NoUnfinishedOutputs {
    _unfinished: MutexGuard<'static, BTreeSet<PathBuf>>,
}

/// Removes the temporary files and folders of all outputs that this process is writing at the moment, for a program that is about to end early.
///
/// An object, library or archive is written to a temporary file (`.tvm-ffi-...`) beside its place, which goes away with an error or a panic, but not when a
/// signal ends the process. A program that catches such a signal calls this before it ends, from a thread and not from the signal's handler itself, as
/// it locks and allocates. This library has no handlers of its own.
///
/// Writing on after the returned value is dropped ends in an error: the temporary file isn't there any more.
/// ```
/// use tvm_ffi_codegen::artifact::remove_unfinished_outputs;
///
/// // in the thread that waits for signals
/// let none = remove_unfinished_outputs();
/// // end the process here, with `none` alive
/// # drop(none);
/// ```
pub fn remove_unfinished_outputs() -> NoUnfinishedOutputs {
    /// A linker that still runs may put another file into a folder while it is removed.
    const TRIES: usize = 10;

    let mut unfinished = unfinished();
    for path in std::mem::take(&mut *unfinished) {
        // a file that can't be removed stays: whoever ends has nobody to tell
        let _ = match path.is_dir() {
            true => (0..TRIES).map(|_| fs::remove_dir_all(&path)).find(Result::is_ok).unwrap_or(Ok(())),
            false => fs::remove_file(&path),
        };
    }
    NoUnfinishedOutputs { _unfinished: unfinished }
}

/// An entry of [`UNFINISHED`], which goes away with this value.
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

/// A file that is written beside its place and moved there in the end. Dropped before, it leaves nothing.
pub(super) struct Output {
    temp: NamedTempFile,
    place: PathBuf,
    // dropped after the file, which is known until it is gone
    entry: Unfinished,
}

impl Output {
    /// Begins a file at `path`.
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

    /// Moves the file to its place, where it replaces what was there.
    pub(super) fn commit(self) -> io::Result<()> {
        let Self { temp, place, entry } = self;
        let mut all = unfinished();
        let moved = temp.persist(&place).map(drop).map_err(|error| not_replaced(&place, error.error));
        all.remove(&entry.0);
        drop(all);
        moved
    }
}

/// A folder for a tool that writes its own output, beside the place where that goes.
pub(super) struct OutputFolder {
    folder: TempDir,
    place: PathBuf,
    // dropped after the folder, which is known until it is gone
    _entry: Unfinished,
}

impl OutputFolder {
    /// Begins a file at `path`.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let place = place(path)?;
        let all = unfinished();
        let folder = builder().tempdir_in(folder(&place))?;
        let entry = Unfinished::enter(all, folder.path());
        Ok(Self { folder, place, _entry: entry })
    }

    /// The folder, which goes away with this value.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Where the tool shall write: a file of the final name.
    pub(super) fn file(&self) -> PathBuf {
        self.folder.path().join(self.place.file_name().unwrap_or_default())
    }

    /// Whether the tool has written the file.
    pub(super) fn is_written(&self) -> bool {
        self.file().is_file()
    }

    /// Moves that file to its place.
    pub(super) fn commit(self) -> io::Result<()> {
        let _all = unfinished();
        fs::rename(self.file(), &self.place).map_err(|error| not_replaced(&self.place, error))
    }
}

/// The error of a file that was not moved to its place. Windows moves none over a file that is in use, which its own words don't say.
fn not_replaced(place: &Path, error: io::Error) -> io::Error {
    if !cfg!(windows) || !place.exists() {
        return error;
    }
    let why = "a library that is loaded, or a file that is open, is in use, and Windows doesn't replace it";
    io::Error::new(error.kind(), format!("the file that is there stays, as it can't be replaced ({why}): {error}"))
}

fn builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(".tvm-ffi-");
    builder
}

/// As [`builder`]; as for any other new file, the umask has its say.
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

/// The file that a path leads to, which may be through a link. Moving a file over a device, a pipe or a folder would replace it, or fail late.
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
