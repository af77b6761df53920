//! A cache of artifacts in a folder that many processes share.
//!
//! An artifact is the file `<key>/<hash><extension>`, where the hash is that of its bytes. So a path never has other bytes than it had: a library that a process
//! has loaded from it stays what it is. A file is written under another name and moved to its place, and it is compared with its name when it is
//! read. An artifact that doesn't fit its name is removed.

use std::ffi::OsStr;
use std::fs::{self, DirEntry, File};
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use super::map::open;

mod key;

pub use key::{CacheKey, CacheKeyBuilder, NotCacheable, build_id};

/// How unfinished artifacts are named.
const UNFINISHED: &str = ".unfinished-";

/// The age at which unfinished artifacts are those of a process that was ended.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Artifacts by their keys, in a folder that processes and threads share.
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
/// assert_eq!(cache.get(&key, ".o")?, Some(object));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    max_bytes: u64,
    /// The bytes that were added by this value since the folder was last looked through.
    added: AtomicU64,
}

impl Cache {
    /// The cache of a folder, which is made if it isn't there. The folder holds at most about `max_bytes`, and one artifact more: the artifacts that were
    /// used longest ago go first.
    ///
    /// # Errors
    /// The folder can't be made.
    pub fn open(folder: impl Into<PathBuf>, max_bytes: u64) -> io::Result<Self> {
        let folder = folder.into();
        fs::create_dir_all(&folder)?;
        // a first addition looks through the folder
        Ok(Cache { folder, max_bytes, added: AtomicU64::new(max_bytes) })
    }

    /// The artifact of a key, read and compared with its hash; `None` where there is none.
    ///
    /// # Errors
    /// The folder can't be read. An artifact that is broken is removed, and no error.
    pub fn get(&self, key: &CacheKey, extension: &str) -> io::Result<Option<PathBuf>> {
        let entries = match fs::read_dir(self.place(key)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let path = entry?.path();
            let Some(hash) = hash_in_name(&path, extension) else { continue };
            match hash_of(&path) {
                Ok(found) if found == hash => {
                    // the time of its last use; without it the artifact goes earlier
                    let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
                    return Ok(Some(path));
                }
                // another process has removed it
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                _ => {}
            }
            // broken by another's hand or by a machine that went down: whoever needs it makes it again
            let _ = fs::remove_file(&path);
        }
        Ok(None)
    }

    /// The artifact of a key, made if it isn't there. `make` writes it to the path that it is given, in a folder of its own in which it may write other
    /// files. Where several make it at once, each takes its own.
    ///
    /// # Errors
    /// The error of `make`, or the folder can't be read or written.
    pub fn get_or_make<E: From<io::Error>>(
        &self,
        key: &CacheKey,
        extension: &str,
        make: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        if let Some(path) = self.get(key, extension)? {
            return Ok(path);
        }
        let folder = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&self.folder)?;
        let made = folder.path().join(format!("artifact{extension}"));
        make(&made)?;
        Ok(self.take(key, extension, &made)?)
    }

    /// Puts an artifact of bytes into the cache, and gives its path.
    ///
    /// # Errors
    /// The folder can't be read or written.
    pub fn insert(&self, key: &CacheKey, extension: &str, artifact: &[u8]) -> io::Result<PathBuf> {
        let folder = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&self.folder)?;
        let made = folder.path().join("artifact");
        fs::write(&made, artifact)?;
        self.take(key, extension, &made)
    }

    /// Moves an artifact from a temporary folder to its place.
    fn take(&self, key: &CacheKey, extension: &str, made: &Path) -> io::Result<PathBuf> {
        /// How often the key's folder may be removed by another process before the artifact is in it.
        const TRIES: usize = 10;

        let (hash, size) = (hash_of(made)?, fs::metadata(made)?.len());
        let place = self.place(key);
        let path = place.join(format!("{hash}{extension}"));
        let mut moved = Ok(());
        for _ in 0..TRIES {
            fs::create_dir_all(&place)?;
            // A file that is there has the same bytes by its name, and may be loaded: it stays, unless it is broken.
            if hash_of(&path).is_ok_and(|found| found == hash) {
                return Ok(path);
            }
            moved = fs::rename(made, &path);
            match &moved {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                _ => break,
            }
        }
        moved?;
        let added = self.added.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        if added > self.max_bytes / 16 {
            self.added.store(0, Ordering::Relaxed);
            self.evict(&path)?;
        }
        Ok(path)
    }

    /// Removes the artifacts that were used longest ago until the others fit, and what processes that were ended have left. `newest` stays.
    fn evict(&self, newest: &Path) -> io::Result<()> {
        let mut artifacts = Vec::new();
        for entry in fs::read_dir(&self.folder)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                if age(&entry).is_some_and(|age| age > ABANDONED) {
                    let _ = fs::remove_dir_all(entry.path());
                }
                continue;
            }
            // a folder that can't be read, or isn't there any more, is another's business
            for artifact in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
                if let Ok(metadata) = artifact.metadata()
                    && metadata.is_file()
                {
                    let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                    artifacts.push((used, metadata.len(), artifact.path()));
                }
            }
        }
        let mut total: u64 = artifacts.iter().map(|(_, size, _)| size).sum();
        artifacts.sort();
        for (_, size, path) in artifacts {
            if total <= self.max_bytes {
                break;
            }
            if path != newest && fs::remove_file(&path).is_ok() {
                total -= size;
                // the key's folder goes with its last artifact
                let _ = path.parent().map(fs::remove_dir);
            }
        }
        Ok(())
    }

    fn place(&self, key: &CacheKey) -> PathBuf {
        self.folder.join(key.to_string())
    }
}

fn age(entry: &DirEntry) -> Option<Duration> {
    SystemTime::now().duration_since(entry.metadata().ok()?.modified().ok()?).ok()
}

/// The hash that a path has as its name, with this extension.
fn hash_in_name(path: &Path, extension: &str) -> Option<String> {
    let name = path.file_name().and_then(OsStr::to_str)?.strip_suffix(extension)?;
    (name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| name.to_owned())
}

/// The SHA-256 of a file, in hexadecimal digits. The file is read and not mapped, as nobody knows who else writes to it.
fn hash_of(path: &Path) -> io::Result<String> {
    const PART: usize = 1 << 16;

    let mut reader = BufReader::with_capacity(PART, open(path)?);
    let mut hasher = Sha256::new();
    loop {
        let part = reader.fill_buf()?;
        let len = part.len();
        if len == 0 {
            break;
        }
        hasher.update(part);
        reader.consume(len);
    }
    let hash: [u8; 32] = hasher.finalize().into();
    Ok(hash.iter().map(|byte| format!("{byte:02x}")).collect())
}
