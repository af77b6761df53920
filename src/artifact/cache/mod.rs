//! A cache of artifacts in a directory that many processes share.
//!
//! An artifact is the file `<key>/<hash><extension>`, where the hash is computed from its key, its extension and its
//! bytes. A path therefore always has the same bytes, and a library that a process has loaded from it never changes. A
//! file is written under another name and then moved, and its hash is compared with its name when it is read. An
//! artifact that doesn't match its name is removed: its bytes have changed, or it was moved here from another key.
//! Nothing else is removed: a file must have a name that a cache makes, in a directory marked as a cache.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use hmac_sha256::Hash as Sha256;
use tempfile::TempDir;

use super::map::open;
use folder::Folder;
use names::{UNFINISHED, check_extension, hash_in, is_artifact, is_key, is_unfinished};

mod folder;
mod key;
mod mark;
mod names;

pub use key::{CacheKey, CacheKeyBuilder, NotCacheable, build_id};

/// Unfinished files of this age were left by a process that was killed.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The file that [`Cache::get_or_make`] returns. It is in the cache or, if the cache can't store it, in a temporary
/// directory that is removed with this value.
#[derive(Debug)]
pub struct Artifact {
    path: PathBuf,
    uncached: Option<(TempDir, io::Error)>,
}

impl Artifact {
    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why the file isn't in the cache: the disk is full, or the directory is read-only or writable for another user.
    /// `None` if the file is in the cache.
    pub fn not_cached(&self) -> Option<&io::Error> {
        self.uncached.as_ref().map(|(_, problem)| problem)
    }

    /// Keeps the file and returns its path. If the file is in a temporary directory, you remove that directory.
    pub fn keep(self) -> PathBuf {
        if let Some((folder, _)) = self.uncached {
            let _ = folder.keep();
        }
        self.path
    }
}

/// Artifacts by their keys, in a directory that processes and threads share.
///
/// A process loads what it finds in the directory, so another user who can write there can run code in the process. On
/// Unix the cache creates directories with mode 0700. It refuses a directory or file that its group or others can write
/// to, or whose owner is neither this user nor root. Parent directories are not checked. On Windows nothing is checked.
///
/// The file `CACHEDIR.TAG` marks a directory as a cache. A cache marks a directory that it creates or finds empty,
/// and refuses any other unmarked directory.
///
/// ```
/// use tvm_ffi_codegen::artifact::{Cache, CacheKey, LibraryBuilder};
/// use tvm_ffi_codegen::{Kernel, Signature};
///
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path().join("cache");
/// let cache = Cache::open(&folder, 64 << 20)?;
/// let scale: Signature = "scale(x: Tensor([n], float32), f: float64)".parse()?;
/// let library = LibraryBuilder::new().function(&scale, &Kernel::symbol("my_scale"));
/// let key = CacheKey::builder().library(&library)?.finish();
/// let make = |path: &std::path::Path| -> Result<(), Box<dyn std::error::Error>> { Ok(library.emit()?.write(path)?) };
/// let object = cache.get_or_make(&key, ".o", make)?;
/// assert!(object.not_cached().is_none());
/// assert_eq!(cache.get(&key, ".o")?.as_deref(), Some(object.path()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    max_bytes: u64,
    /// The bytes that this value has added since the directory was last scanned.
    added: AtomicU64,
}

impl Cache {
    /// Opens the cache in a directory, which is created if it doesn't exist. The directory holds at most about
    /// `max_bytes` plus one artifact; the least recently used artifacts are evicted first.
    ///
    /// It is not an error if the directory can't be written to because it is read-only or its disk is full. Existing
    /// artifacts are still found, and new ones stay [uncached](Artifact::not_cached).
    ///
    /// # Errors
    /// The path is not a directory, another user can write to the directory, or it is neither empty nor a cache.
    pub fn open(folder: impl Into<PathBuf>, max_bytes: u64) -> io::Result<Self> {
        // the first addition scans the directory
        let cache = Cache { folder: folder.into(), max_bytes, added: AtomicU64::new(max_bytes) };
        match cache.writable() {
            Err(error) if !is_of_writing(&error) => Err(error),
            _ => Ok(cache),
        }
    }

    /// Looks an artifact up, reads it and checks its hash. Returns `None` if there is none.
    ///
    /// # Errors
    /// The directory can't be read, or another user can write to it. A broken artifact is removed and isn't an error.
    pub fn get(&self, key: &CacheKey, extension: &str) -> io::Result<Option<PathBuf>> {
        check_extension(extension)?;
        let found = (|| {
            let folder = Folder::open(&self.folder)?;
            let place = folder.inside(&folder_of(key))?;
            for name in place.names()? {
                let Some(hash) = hash_in(&name, extension) else { continue };
                // skip an entry that isn't a regular file or has been removed meanwhile
                let Ok(file) = place.file(&name) else { continue };
                if hash_of(key, extension, &file)? == hash {
                    // records the last use; if that fails, the artifact is evicted earlier
                    let _ = file.set_modified(SystemTime::now());
                    return Ok(self.path(key, &name));
                }
                // broken by another program or by a crash of the machine; it is made again when it is needed
                if mark::is_marked(&folder) {
                    let _ = place.remove_file(&name);
                }
            }
            Err(io::Error::from(ErrorKind::NotFound))
        })();
        match found {
            Ok(path) => Ok(Some(path)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the artifact of a key, and makes it if it isn't cached. `make` writes it to the given path, in a
    /// temporary directory of its own where it may write other files. If several callers make an artifact at the same
    /// time, each gets its own.
    ///
    /// It is not an error if the cache can't be read or written to: the artifact is made, and
    /// [`Artifact::not_cached`] reports why it isn't cached.
    ///
    /// # Errors
    /// The error of `make` or of the temporary directory, or the extension is invalid.
    pub fn get_or_make<E: From<io::Error>>(
        &self,
        key: &CacheKey,
        extension: &str,
        make: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<Artifact, E> {
        check_extension(extension)?;
        // if reading fails, storing fails too and reports why
        if let Ok(Some(path)) = self.get(key, extension) {
            return Ok(Artifact { path, uncached: None });
        }
        // not in the cache's directory, so an error of `make` can't be confused with an error of the cache
        let folder = tempfile::Builder::new().prefix("tvm-ffi-codegen-").tempdir()?;
        let path = folder.path().join(format!("artifact{extension}"));
        make(&path)?;
        let made = open(&path)?;
        Ok(match self.store(key, extension, made) {
            Ok(path) => Artifact { path, uncached: None },
            Err(problem) => Artifact { path, uncached: Some((folder, problem)) },
        })
    }

    /// Stores the bytes of an artifact in the cache and returns the path.
    ///
    /// # Errors
    /// The directory can't be read or written to, or another user can write to it.
    pub fn insert(&self, key: &CacheKey, extension: &str, artifact: &[u8]) -> io::Result<PathBuf> {
        check_extension(extension)?;
        self.store(key, extension, artifact)
    }

    /// Opens the directory for writing; creates and marks it if necessary.
    fn writable(&self) -> io::Result<Folder> {
        let folder = match Folder::open(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Folder::make_all(&self.folder)?;
                Folder::open(&self.folder)?
            }
            opened => opened?,
        };
        mark::mark(&folder, &self.folder)?;
        Ok(folder)
    }

    /// Copies an artifact to its path in the cache.
    fn store(&self, key: &CacheKey, extension: &str, artifact: impl Read) -> io::Result<PathBuf> {
        /// The number of attempts, since another process may remove the key's directory before the artifact is in it.
        const TRIES: usize = 10;

        let folder = self.writable()?;
        let mut copy = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.folder)?;
        let mut size = 0;
        let hash = hash_parts(key, extension, artifact, |part| {
            size += part.len() as u64;
            copy.write_all(part)
        })?;
        let (key_folder, name) = (folder_of(key), OsString::from(format!("{hash}{extension}")));
        let path = self.path(key, &name);
        let mut copy = copy.into_temp_path();
        for tries_left in (0..TRIES).rev() {
            folder.make(&key_folder)?;
            let place = match folder.inside(&key_folder) {
                Err(error) if error.kind() == ErrorKind::NotFound && tries_left > 0 => continue,
                place => place?,
            };
            // By its name, an existing file has the same bytes, and it may be loaded: keep it unless it is broken.
            if place.file(&name).and_then(|file| hash_of(key, extension, &file)).is_ok_and(|found| found == hash) {
                return Ok(path);
            }
            match copy.persist(&path) {
                Ok(()) => break,
                Err(error) if error.error.kind() == ErrorKind::NotFound && tries_left > 0 => copy = error.path,
                Err(error) => return Err(error.error),
            }
        }
        let added = self.added.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        if added > self.max_bytes / 16 {
            self.added.store(0, Ordering::Relaxed);
            // the artifact is stored, even if evicting others fails
            let _ = evict(&folder, self.max_bytes, (&key_folder, &name));
        }
        Ok(path)
    }

    fn path(&self, key: &CacheKey, name: &OsStr) -> PathBuf {
        self.folder.join(folder_of(key)).join(name)
    }
}

/// Removes the least recently used artifacts until the others fit, and files left by killed processes. `newest`
/// stays.
fn evict(folder: &Folder, max_bytes: u64, newest: (&OsStr, &OsStr)) -> io::Result<()> {
    if !mark::is_marked(folder) {
        return Ok(());
    }
    let mut artifacts = Vec::new();
    for name in folder.names()? {
        if is_unfinished(&name) {
            if used(folder, &name).is_some_and(|(used, _)| used.elapsed().is_ok_and(|age| age > ABANDONED)) {
                let _ = folder.remove_file(&name);
            }
        } else if is_key(&name) {
            // skip a directory that can't be read or was removed by another process
            let Ok(place) = folder.inside(&name) else { continue };
            for artifact in place.names().unwrap_or_default().into_iter().filter(|name| is_artifact(name)) {
                if let Some((used, size)) = used(&place, &artifact) {
                    artifacts.push((used, size, name.clone(), artifact));
                }
            }
        }
    }
    let mut total: u64 = artifacts.iter().map(|(_, size, ..)| size).sum();
    artifacts.sort();
    for (_, size, key, name) in artifacts {
        if total <= max_bytes {
            break;
        }
        if (&*key, &*name) != newest && folder.inside(&key).is_ok_and(|place| place.remove_file(&name).is_ok()) {
            total -= size;
            // fails, as intended, unless this was the key's last artifact
            let _ = folder.remove_folder(&key);
        }
    }
    Ok(())
}

/// When a regular file was last used, and its size.
fn used(folder: &Folder, name: &OsStr) -> Option<(SystemTime, u64)> {
    let metadata = folder.file(name).and_then(|file| file.metadata()).ok()?;
    Some((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), metadata.len()))
}

fn folder_of(key: &CacheKey) -> OsString {
    key.to_string().into()
}

/// Whether an error means that the directory can't be written to. A cache works without writing.
fn is_of_writing(error: &io::Error) -> bool {
    use ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}

/// The hash in the name of an artifact that is a file. The file is read instead of mapped, because another process may
/// write to it.
fn hash_of(key: &CacheKey, extension: &str, file: &File) -> io::Result<String> {
    hash_parts(key, extension, file, |_| Ok(()))
}

/// The hash in the name of an artifact: a SHA-256 in hexadecimal digits. Each part of the bytes is also passed to
/// `each`.
fn hash_parts(
    key: &CacheKey,
    extension: &str,
    bytes: impl Read,
    mut each: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<String> {
    const PART: usize = 1 << 16;

    let mut reader = BufReader::with_capacity(PART, bytes);
    let mut hasher = Sha256::new();
    // no extension has this character
    hasher.update(format!("{key}{extension}/"));
    loop {
        let part = reader.fill_buf()?;
        let len = part.len();
        if len == 0 {
            break;
        }
        hasher.update(part);
        each(part)?;
        reader.consume(len);
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
