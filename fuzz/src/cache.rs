//! Folders of the cache: an input looks artifacts up, and changes, cuts, swaps and replaces files meanwhile. A look-up
//! finds the artifact of its key, or the artifact is made again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use arbitrary::{Result as Read, Unstructured};
use tvm_ffi_codegen::artifact::{Artifact, Cache, CacheKey, LibraryBuilder};
use tvm_ffi_codegen::{Kernel, Signature};

/// The maximum number of steps of an input.
const LONGEST: usize = 48;
/// The functions whose objects are cached. The first two have objects of the same size.
const FUNCTIONS: [&str; 4] =
    ["f(x: int64)", "f(y: int64)", "f(x: Tensor([n], float32), y: int8)", "g(x: Optional[str]) -> str"];
/// The extensions of artifacts. An object has other bytes for each of them.
const EXTENSIONS: [&str; 3] = [".o", ".so", ""];
/// The sizes of caches: without room, with room for some objects, and with room for all.
const SIZES: [u64; 3] = [0, 10_000, 1 << 30];

/// A function's key and its object.
struct Function {
    key: CacheKey,
    object: Vec<u8>,
}

static OBJECTS: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let function = |text: &&str| {
        let signature: Signature = text.parse().expect("a signature");
        let library = LibraryBuilder::new().function(&signature, &Kernel::symbol("k"));
        let key = CacheKey::builder().library(&library).expect("a symbol").finish();
        Function { key, object: library.emit().expect("an object").as_bytes().to_vec() }
    };
    FUNCTIONS.iter().map(function).collect()
});

/// Runs an input as steps on a new folder.
///
/// # Panics
/// The cache gives an artifact that isn't the key's, or fails where it may not.
pub fn run(input: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut input = Unstructured::new(input);
    let size = input.choose(&SIZES).copied().unwrap_or(0);
    let path = folder.path().join("cache");
    let steps = Steps { cache: Cache::open(&path, size).expect("a new cache"), path };
    for _ in 0..LONGEST {
        if input.is_empty() || steps.step(&mut input).is_err() {
            break;
        }
    }
    // whatever the folder has become, each artifact can be had
    for number in 0..FUNCTIONS.len() {
        EXTENSIONS.iter().for_each(|extension| drop(steps.had(number, extension)));
    }
}

/// The bytes of a function's artifact: its object, and what makes it another one for each extension.
fn content(number: usize, extension: &str) -> Vec<u8> {
    [&OBJECTS[number].object, extension.as_bytes()].concat()
}

struct Steps {
    cache: Cache,
    path: PathBuf,
}

impl Steps {
    /// Takes an artifact from the cache, or makes it.
    fn had(&self, number: usize, extension: &str) -> Artifact {
        let make = |path: &Path| fs::write(path, content(number, extension));
        let artifact = self.cache.get_or_make::<io::Error>(&OBJECTS[number].key, extension, make);
        let artifact = artifact.expect("an artifact that can be made");
        self.is_right(artifact.path(), number, extension);
        artifact
    }

    fn is_right(&self, path: &Path, number: usize, extension: &str) {
        let found = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(found == content(number, extension), "{} isn't {}{extension}", path.display(), FUNCTIONS[number]);
    }

    fn step(&self, input: &mut Unstructured<'_>) -> Read<()> {
        let number = input.int_in_range(0..=FUNCTIONS.len() - 1)?;
        let extension = *input.choose(&EXTENSIONS)?;
        match input.int_in_range(0..=19)? {
            0..=3 => drop(self.had(number, extension)),
            4 => {
                // an error is one of the folder
                if let Ok(path) = self.cache.insert(&OBJECTS[number].key, extension, &content(number, extension)) {
                    self.is_right(&path, number, extension);
                }
            }
            5..=6 => {
                if let Ok(Some(path)) = self.cache.get(&OBJECTS[number].key, extension) {
                    self.is_right(&path, number, extension);
                }
            }
            // a cache that can't be opened is refused as a whole, and the one that is open stays usable
            7 => drop(Cache::open(&self.path, 10_000)),
            _ => {
                // an error of these is none of the cache
                let _ = self.damage(input)?;
            }
        }
        Ok(())
    }

    /// A path in the folder, chosen by the input: the folder itself, one of a key, or a file in it.
    fn place(&self, input: &mut Unstructured<'_>) -> Read<PathBuf> {
        let mut path = self.path.clone();
        for _ in 0..input.int_in_range(0..=2)? {
            let Ok(entries) = fs::read_dir(&path) else { break };
            let mut names: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
            names.sort_unstable();
            if names.is_empty() {
                break;
            }
            path.push(input.choose(&names)?);
        }
        Ok(path)
    }

    /// Does what other programs and crashes may do to files, and a user who can write to the folder.
    fn damage(&self, input: &mut Unstructured<'_>) -> Read<io::Result<()>> {
        let (path, other) = (self.place(input)?, self.place(input)?);
        let names = ["CACHEDIR.TAG", ".unfinished-aB3xYz", "notes.txt"];
        Ok(match input.int_in_range(0..=13)? {
            0..=1 => fs::rename(&path, &other),
            // as the file is named there
            2..=3 => fs::rename(&path, other.with_file_name(path.file_name().unwrap_or_default())),
            4 => fs::copy(&path, &other).map(drop),
            5 => fs::copy(&path, other.with_file_name(path.file_name().unwrap_or_default())).map(drop),
            6 => {
                let (at, byte) = (input.arbitrary::<u16>()?, input.arbitrary::<u8>()?);
                let changed = fs::read(&path).map(|mut bytes| {
                    let len = bytes.len().max(1);
                    bytes.get_mut(usize::from(at) % len).into_iter().for_each(|at| *at ^= byte);
                    bytes
                });
                changed.and_then(|bytes| fs::write(&path, bytes))
            }
            7 => {
                let size = input.arbitrary::<u16>()?;
                fs::OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(size.into()))
            }
            8 => fs::write(path.join(input.choose(&names)?), input.bytes(input.len().min(8))?),
            9 => fs::remove_file(&path),
            10 => fs::remove_file(&path).and_then(|()| fs::create_dir(&path)),
            11 => fs::remove_dir_all(&path),
            #[cfg(unix)]
            12 => fs::remove_file(&path).and_then(|()| std::os::unix::fs::symlink(&other, &path)),
            #[cfg(unix)]
            13 => {
                let mode = *input.choose(&[0o700, 0o777, 0o500, 0o000, 0o600])?;
                fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode))
            }
            _ => fs::write(&path, b""),
        })
    }
}
