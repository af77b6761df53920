//! The cache of artifacts: what is the same, what is noticed, and many processes at once.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tvm_ffi_codegen::artifact::{Cache, CacheKey, LibraryBuilder, Triple, build_id};
use tvm_ffi_codegen::spec::{Part, Place};
use tvm_ffi_codegen::{Convention, Kernel, OptLevel, Signature};

fn key(number: u64) -> CacheKey {
    CacheKey::builder().part("number", number.to_le_bytes()).finish()
}

/// The bytes of the artifact of a key, from 1 to some 20,000.
fn content(number: u64) -> Vec<u8> {
    let len = 1 + (number * 7919) % 20_011;
    (0..len).map(|i| ((i * (number + 3)) >> 2) as u8).collect()
}

fn make(number: u64) -> impl Fn(&Path) -> io::Result<()> {
    move |path| fs::write(path, content(number))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    folders.flat_map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())).collect()
}

#[test]
fn an_artifact_is_made_once() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path().join("a/b"), 1 << 20).unwrap();
    assert_eq!(cache.get(&key(1), ".so").unwrap(), None);
    let path = cache.get_or_make(&key(1), ".so", make(1)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), content(1));
    let never = |_: &Path| -> io::Result<()> { panic!("it is there") };
    assert_eq!(cache.get_or_make(&key(1), ".so", never).unwrap(), path);
    assert_eq!(cache.insert(&key(1), ".so", &content(1)).unwrap(), path);
    // another extension is another artifact
    assert_eq!(cache.get(&key(1), ".o").unwrap(), None);
    assert_ne!(cache.get_or_make(&key(1), ".o", make(1)).unwrap(), path);
    // another cache of the folder has it
    let again = Cache::open(folder.path().join("a/b"), 1 << 20).unwrap();
    assert_eq!(again.get(&key(1), ".so").unwrap(), Some(path));
    // an error leaves nothing
    let error = cache.get_or_make(&key(2), ".so", |_| Err(io::Error::other("no"))).unwrap_err();
    assert_eq!(error.to_string(), "no");
    assert!(cache.get_or_make(&key(2), ".so", |_| Ok::<(), io::Error>(())).is_err());
    assert_eq!(files(&folder.path().join("a/b")).len(), 2);
}

#[test]
fn broken_artifacts_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path(), 1 << 20).unwrap();
    let breaks: [fn(&Path); 4] = [
        |path| fs::write(path, "").unwrap(),
        |path| fs::write(path, &content(5)[..content(5).len() - 1]).unwrap(),
        |path| {
            let mut bytes = fs::read(path).unwrap();
            bytes[0] ^= 1;
            fs::write(path, bytes).unwrap();
        },
        |path| fs::write(path, [content(5), vec![0]].concat()).unwrap(),
    ];
    for damage in breaks {
        let path = cache.get_or_make(&key(5), "", make(5)).unwrap();
        damage(&path);
        assert_eq!(cache.get(&key(5), "").unwrap(), None);
        assert!(!path.exists());
        let path = cache.get_or_make(&key(5), "", make(5)).unwrap();
        damage(&path);
        assert_eq!(fs::read(cache.insert(&key(5), "", &content(5)).unwrap()).unwrap(), content(5));
    }
    // what isn't an artifact's name is passed over
    fs::write(folder.path().join(key(5).to_string()).join("notes.txt"), "mine").unwrap();
    assert!(cache.get(&key(5), "").unwrap().is_some());
}

#[test]
fn the_artifacts_that_were_used_longest_ago_go_first() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path(), 10_000).unwrap();
    let artifact = |number: u8| vec![number; 1000];
    let abandoned = folder.path().join(".unfinished-old");
    fs::create_dir(&abandoned).unwrap();
    let long_ago = SystemTime::now() - Duration::from_secs(1_000_000);
    fs::File::open(&abandoned).and_then(|file| file.set_modified(long_ago)).unwrap_or_default();
    let mut paths = Vec::new();
    for number in 0..30 {
        let path = cache.insert(&key(number), "", &artifact(number as u8)).unwrap();
        // the times are an hour apart, and artifact 0 is used again and again
        let used = long_ago + Duration::from_secs(3600 * number);
        fs::File::options().write(true).open(&path).unwrap().set_modified(used).unwrap();
        assert!(cache.get(&key(0), "").unwrap().is_some(), "{number}");
        paths.push(path);
    }
    let left: Vec<_> = (0..30).filter(|number| paths[*number].exists()).collect();
    assert!(left.len() <= 11 && left[0] == 0 && left[1..] == (30 - left.len() + 1..30).collect::<Vec<_>>(), "{left:?}");
    assert!(cfg!(windows) || !abandoned.exists());
    // an artifact that is larger than the cache stays until the next one comes
    let large = cache.insert(&key(100), "", &vec![1; 20_000]).unwrap();
    assert!(large.exists() && files(folder.path()) == [large]);
}

#[test]
fn keys_are_those_of_all_that_decides_the_code() {
    let signature: Signature = "f(x: Tensor([n], float32))".parse().unwrap();
    let other: Signature = "f(x: Tensor([n], float64))".parse().unwrap();
    let placed = signature.clone().with_place(Part::Param(0), Place::new("a.py", 1, "f")).unwrap();
    let of = |library: &LibraryBuilder| CacheKey::builder().library(library).unwrap().finish();
    let kernel = |symbol: &str| Kernel::symbol(symbol);
    let plain = || LibraryBuilder::new().function(&signature, &kernel("k"));
    let all = [
        LibraryBuilder::new(),
        plain(),
        plain().function(&other, &kernel("l")),
        LibraryBuilder::new().function(&signature, &kernel("l")),
        LibraryBuilder::new().function(&signature, &Kernel::check_only()),
        LibraryBuilder::new().function(&signature, &kernel("k").convention(Convention::DlTensor)),
        LibraryBuilder::new().function(&other, &kernel("k")),
        LibraryBuilder::new().function(&placed, &kernel("k")),
        LibraryBuilder::new().documented(&signature, &kernel("k"), ""),
        LibraryBuilder::new().documented(&signature, &kernel("k"), "k"),
        plain().target("aarch64-unknown-linux-gnu".parse().unwrap()),
        plain().opt_level(OptLevel::None),
        plain().cpu("x86-64-v3"),
        plain().feature("avx2"),
        plain().system_library("p"),
        plain().metadata(false),
        plain().register_global("f", "g"),
    ];
    let keys: std::collections::HashSet<_> = all.iter().map(of).collect();
    assert_eq!(keys.len(), all.len());
    assert_eq!(of(&plain()), of(&plain().target(Triple::host())));
    let parts = |parts: &[(&str, &str)]| {
        let add = |key: tvm_ffi_codegen::artifact::CacheKeyBuilder, (name, value): &(&str, &str)| key.part(name, value);
        parts.iter().fold(CacheKey::builder(), add).finish()
    };
    assert_ne!(parts(&[("ab", "c")]), parts(&[("a", "bc")]));
    assert_ne!(parts(&[("a", ""), ("", "")]), parts(&[("a", "")]));
    assert_eq!(format!("{:?}", key(1)), format!("CacheKey({})", key(1)));
    assert!(build_id().starts_with(env!("CARGO_PKG_VERSION")));
    for kernel in [Kernel::body(|_| ()), Kernel::address(std::ptr::dangling())] {
        let error = CacheKey::builder().library(&LibraryBuilder::new().function(&signature, &kernel)).unwrap_err();
        assert!(error.to_string().contains("function `f`"), "{error}");
    }
}

/// Under Wine a process takes too long to start.
#[cfg(unix)]
mod processes {
    use std::io::ErrorKind;
    use std::process::{Command, Stdio};

    use super::*;

    /// Set for the processes of the test below: the folder.
    const FOLDER: &str = "TEST_OF_A_CACHE_OF_MANY_PROCESSES";
    const KEYS: u64 = 1000;

    /// What each process does: each key, in an order of its own.
    fn work(folder: &Path) {
        // so few that artifacts go while others read them
        let cache = Cache::open(folder, 2_000_000).unwrap();
        let start = u64::from(std::process::id());
        for step in 0..KEYS {
            let number = (start + step * 383) % KEYS;
            let path = cache.get_or_make(&key(number), ".bin", make(number)).unwrap();
            match fs::read(&path) {
                Ok(bytes) => assert!(bytes == content(number), "{}", path.display()),
                // another process has evicted it meanwhile
                Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
            }
        }
    }

    #[test]
    fn eight_processes_share_a_cache_and_may_be_killed() {
        if let Some(folder) = std::env::var_os(FOLDER) {
            return work(Path::new(&folder));
        }
        let folder = tempfile::tempdir().unwrap();
        let start = || {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "artifact::cache::processes::eight_processes_share_a_cache_and_may_be_killed"])
                .env(FOLDER, folder.path())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let mut running: Vec<_> = (0..8).map(|_| start()).collect();
        for victim in 0..24 {
            std::thread::sleep(Duration::from_millis(5 + victim * 3 % 20));
            let at = victim as usize % running.len();
            running[at].kill().unwrap();
            running[at].wait().unwrap();
            running[at] = start();
        }
        for child in running {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
        // nothing that is there is wrong
        let cache = Cache::open(folder.path(), u64::MAX).unwrap();
        let found = (0..KEYS).filter_map(|number| Some((number, cache.get(&key(number), ".bin").unwrap()?)));
        let count = found.map(|(number, path)| assert!(fs::read(path).unwrap() == content(number))).count();
        assert!(count > 50, "{count}");
    }
}
