//! The cache of artifacts: when keys are equal, which corruption is detected, and many processes at the same time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tvm_ffi_codegen::artifact::{Artifact, Cache, CacheKey, LibraryBuilder, Triple, build_id};
use tvm_ffi_codegen::spec::{Part, SourceLocation};
use tvm_ffi_codegen::{Convention, Kernel, OptLevel, Signature};

fn key(number: u64) -> CacheKey {
    CacheKey::builder().part("number", number.to_le_bytes()).finish()
}

/// The bytes of the artifact for a key, 1 to about 20,000 of them.
fn content(number: u64) -> Vec<u8> {
    let len = 1 + (number * 7919) % 20_011;
    (0..len).map(|i| ((i * (number + 3)) >> 2) as u8).collect()
}

fn make(number: u64) -> impl Fn(&Path) -> io::Result<()> {
    move |path| fs::write(path, content(number))
}

/// The path of an artifact that is in the cache.
fn cached(artifact: Artifact) -> PathBuf {
    assert!(artifact.not_cached().is_none(), "{artifact:?}");
    artifact.path().to_owned()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    folders.flat_map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())).collect()
}

#[test]
fn an_artifact_is_made_once() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path().join("a/b"), 1 << 20).unwrap();
    assert_eq!(cache.get(&key(1), ".so").unwrap(), None);
    let path = cached(cache.get_or_make(&key(1), ".so", make(1)).unwrap());
    assert_eq!(fs::read(&path).unwrap(), content(1));
    let never = |_: &Path| -> io::Result<()> { panic!("it is there") };
    assert_eq!(cached(cache.get_or_make(&key(1), ".so", never).unwrap()), path);
    assert_eq!(cache.insert(&key(1), ".so", &content(1)).unwrap(), path);
    // the same key with another extension is another artifact
    assert_eq!(cache.get(&key(1), ".o").unwrap(), None);
    assert_ne!(cached(cache.get_or_make(&key(1), ".o", make(1)).unwrap()), path);
    // another cache in the same directory finds it
    let again = Cache::open(folder.path().join("a/b"), 1 << 20).unwrap();
    assert_eq!(again.get(&key(1), ".so").unwrap(), Some(path));
    // an error leaves nothing
    let error = cache.get_or_make(&key(2), ".so", |_| Err(io::Error::other("no"))).unwrap_err();
    assert_eq!(error.to_string(), "no");
    assert!(cache.get_or_make(&key(2), ".so", |_| Ok::<(), io::Error>(())).is_err());
    assert_eq!(files(&folder.path().join("a/b")).len(), 2);
}

#[test]
fn an_artifact_of_another_key_or_extension_is_broken() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path(), 1 << 20).unwrap();
    let [one, other] = [1, 2].map(|number| cached(cache.get_or_make(&key(number), ".so", make(number)).unwrap()));
    let moved = other.with_file_name(one.file_name().unwrap());
    fs::rename(&other, other.with_extension("o")).unwrap();
    fs::rename(&one, &moved).unwrap();
    assert_eq!(cache.get(&key(2), ".so").unwrap(), None);
    assert_eq!(cache.get(&key(2), ".o").unwrap(), None);
    assert_eq!(fs::read(cached(cache.get_or_make(&key(2), ".so", make(2)).unwrap())).unwrap(), content(2));
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
        let path = cached(cache.get_or_make(&key(5), "", make(5)).unwrap());
        damage(&path);
        assert_eq!(cache.get(&key(5), "").unwrap(), None);
        assert!(!path.exists());
        let path = cached(cache.get_or_make(&key(5), "", make(5)).unwrap());
        damage(&path);
        assert_eq!(fs::read(cache.insert(&key(5), "", &content(5)).unwrap()).unwrap(), content(5));
    }
    // files that aren't named like artifacts are ignored
    fs::write(folder.path().join(key(5).to_string()).join("notes.txt"), "mine").unwrap();
    assert!(cache.get(&key(5), "").unwrap().is_some());
}

#[test]
fn the_artifacts_that_were_used_longest_ago_go_first() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path(), 10_000).unwrap();
    let artifact = |number: u8| vec![number; 1000];
    let abandoned = folder.path().join(".unfinished-old");
    let long_ago = SystemTime::now() - Duration::from_secs(1_000_000);
    fs::File::create(&abandoned).and_then(|file| file.set_modified(long_ago)).unwrap();
    let mut paths = Vec::new();
    for number in 0..30 {
        let path = cache.insert(&key(number), "", &artifact(number as u8)).unwrap();
        // the times are an hour apart, and artifact 0 is used repeatedly
        let used = long_ago + Duration::from_secs(3600 * number);
        fs::File::options().write(true).open(&path).unwrap().set_modified(used).unwrap();
        assert!(cache.get(&key(0), "").unwrap().is_some(), "{number}");
        paths.push(path);
    }
    let left: Vec<_> = (0..30).filter(|number| paths[*number].exists()).collect();
    assert!(left.len() <= 11 && left[0] == 0 && left[1..] == (30 - left.len() + 1..30).collect::<Vec<_>>(), "{left:?}");
    assert!(!abandoned.exists());
    // an artifact that is larger than the cache stays until the next one is added
    let large = cache.insert(&key(100), "", &vec![1; 20_000]).unwrap();
    assert!(large.exists() && files(folder.path()) == [large]);
}

#[test]
fn only_files_of_the_cache_go() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("cache");
    let cache = Cache::open(&place, 1000).unwrap();
    let first = cache.insert(&key(1), ".o", &[1; 2000]).unwrap();
    // other files, and files with the same names outside, behind a link
    let outside = folder.path().join("outside");
    let name = format!("{}.o", "0".repeat(64));
    let mut mine = vec![place.join("notes.txt"), place.join("project/thesis.tex"), place.join(".unfinished-notes.txt")];
    mine.extend([first.with_file_name("notes.txt"), place.join("project").join(&name), outside.join(&name)]);
    let long_ago = SystemTime::now() - Duration::from_secs(1_000_000);
    for file in &mine {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, [2; 5000]).unwrap();
        fs::File::options().write(true).open(file).unwrap().set_modified(long_ago).unwrap();
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&outside, place.join("f".repeat(64))).unwrap();
        std::os::unix::fs::symlink(outside.join(&name), first.with_file_name(&name)).unwrap();
        mine.extend([place.join("f".repeat(64)), first.with_file_name(&name)]);
    }
    let second = cache.insert(&key(2), ".o", &[2; 2000]).unwrap();
    assert!(!first.exists() && second.exists());
    for file in &mine {
        assert!(file.exists(), "{}", file.display());
    }
    // without its mark the directory may belong to another program
    fs::remove_file(place.join("CACHEDIR.TAG")).unwrap();
    assert!(cache.insert(&key(3), ".o", &[3; 2000]).is_err());
    fs::write(&second, "broken").unwrap();
    assert_eq!(cache.get(&key(2), ".o").unwrap(), None);
    assert!(second.exists());
    // an extension can't escape the directory
    for extension in ["/../../x", "so", ".a/b"] {
        let error = cache.insert(&key(1), extension, &[1]).unwrap_err();
        assert!(error.to_string().starts_with("expected no extension"), "{error}");
    }
}

#[test]
fn a_folder_of_others_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("project")).unwrap();
    let refused = |path: &Path| Cache::open(path, 1000).unwrap_err().to_string();
    let error = refused(folder.path());
    let expected =
        "expected an empty folder, or one that is marked as a cache by its `CACHEDIR.TAG`: it has \"project\"";
    assert_eq!(error, expected);
    // another program's mark
    fs::remove_dir(folder.path().join("project")).unwrap();
    let tag = folder.path().join("CACHEDIR.TAG");
    fs::write(&tag, "Signature: 8a477f597d28d172789f06886806bc55\n").unwrap();
    assert!(refused(folder.path()).ends_with("it has \"CACHEDIR.TAG\""));
    // a cache that was emptied meanwhile is marked again
    fs::remove_file(&tag).unwrap();
    let cache = Cache::open(folder.path(), 1000).unwrap();
    assert!(fs::read_to_string(&tag).unwrap().starts_with("Signature: 8a477f597d28d172789f06886806bc55\n"));
    fs::remove_file(&tag).unwrap();
    cache.insert(&key(1), "", &[1]).unwrap();
    assert!(tag.exists());
    assert!(Cache::open(&tag, 1000).is_err());
}

#[cfg(unix)]
mod users {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn folders_are_this_users_alone() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a/cache");
        let cache = Cache::open(&place, 1000).unwrap();
        let path = cached(cache.get_or_make(&key(1), ".o", make(1)).unwrap());
        let modes = [place.parent().unwrap(), &place, path.parent().unwrap(), &path].map(mode);
        assert_eq!(modes, [0o700, 0o700, 0o700, 0o600]);
        // an empty directory becomes private
        let empty = folder.path().join("empty");
        fs::create_dir(&empty).unwrap();
        set_mode(&empty, 0o777);
        Cache::open(&empty, 1000).unwrap();
        assert_eq!(mode(&empty), 0o700);
        // others may read but not write
        set_mode(&place, 0o755);
        assert_eq!(cache.get(&key(1), ".o").unwrap().as_ref(), Some(&path));
        for mode in [0o720, 0o702, 0o777] {
            set_mode(&place, mode);
            let expected =
                format!("other users can write to the folder: its mode is {mode:o} (`chmod go-w` mends that)");
            assert_eq!(cache.get(&key(1), ".o").unwrap_err().to_string(), expected);
            assert_eq!(Cache::open(&place, 1000).unwrap_err().to_string(), expected);
            let made = cache.get_or_make(&key(1), ".o", make(1)).unwrap();
            assert_eq!(made.not_cached().unwrap().to_string(), expected);
            assert_eq!(fs::read(made.path()).unwrap(), content(1));
        }
        set_mode(&place, 0o700);
        set_mode(path.parent().unwrap(), 0o770);
        assert!(cache.get(&key(1), ".o").is_err());
        set_mode(path.parent().unwrap(), 0o700);
        set_mode(&path, 0o660);
        assert_eq!(cache.get(&key(1), ".o").unwrap(), None);
    }

    /// The directory for the process of the test below, which runs as another user.
    const FOLDER: &str = "TEST_OF_A_CACHE_OF_ANOTHER_USER";

    /// Checks the operations that the other user can do, and those that fail.
    fn other_user(folder: &Path) {
        let refused = |name: &str| Cache::open(folder.join(name), 1000).unwrap_err().to_string();
        assert!(refused("foreign").contains("it belongs to user 1, and this process runs as user 65534"));
        // root's cache, which is read-only here, has a hit; a missing artifact is made
        let cache = Cache::open(folder.join("roots"), 1 << 20).unwrap();
        let hit = cached(cache.get_or_make(&key(1), ".o", |_| -> io::Result<()> { panic!("it is there") }).unwrap());
        assert_eq!(fs::read(hit).unwrap(), content(1));
        let made = cache.get_or_make(&key(2), ".o", make(2)).unwrap();
        assert_eq!(made.not_cached().unwrap().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(fs::read(made.path()).unwrap(), content(2));
        let path = made.path().to_owned();
        drop(made);
        assert!(!path.exists() && !path.parent().unwrap().exists());
        let kept = cache.get_or_make(&key(2), ".o", make(2)).unwrap().keep();
        assert_eq!(fs::read(&kept).unwrap(), content(2));
        fs::remove_dir_all(kept.parent().unwrap()).unwrap();
        assert!(cache.insert(&key(2), ".o", &content(2)).is_err());
        // a directory that can't be created
        let cache = Cache::open(folder.join("new/cache"), 1000).unwrap();
        assert_eq!(cache.get(&key(1), "").unwrap(), None);
        assert!(cache.get_or_make(&key(1), "", make(1)).unwrap().not_cached().is_some());
    }

    #[test]
    fn another_user_can_read_and_not_write() {
        if let Some(folder) = std::env::var_os(FOLDER) {
            return other_user(Path::new(&folder));
        }
        let folder = tempfile::tempdir().unwrap();
        if fs::metadata(folder.path()).unwrap().uid() != 0 {
            eprintln!("skipped: only root can be another user");
            return;
        }
        set_mode(folder.path(), 0o755);
        let roots = Cache::open(folder.path().join("roots"), 1 << 20).unwrap();
        let path = cached(roots.get_or_make(&key(1), ".o", make(1)).unwrap());
        for shared in [&folder.path().join("roots"), path.parent().unwrap()] {
            set_mode(shared, 0o755);
        }
        for shared in [&path, &folder.path().join("roots/CACHEDIR.TAG")] {
            set_mode(shared, 0o644);
        }
        fs::create_dir(folder.path().join("foreign")).unwrap();
        chown(folder.path().join("foreign"), Some(1), None).unwrap();
        // the other user may not be able to access this program at its path
        let program = folder.path().join("test");
        // by another process: a program can't start while a child that another test forks has it open for writing
        let mut copy = Command::new("cp");
        assert!(copy.arg(std::env::current_exe().unwrap()).arg(&program).status().unwrap().success());
        let mut child = Command::new(&program);
        child.args(["--exact", "artifact::cache::users::another_user_can_read_and_not_write"]);
        let child = child.env(FOLDER, folder.path()).env("TMPDIR", "/tmp").current_dir("/").uid(65534).gid(65534);
        let output = child.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }

    /// The directory for the process of the test below, whose files can't grow.
    const FULL: &str = "TEST_OF_A_CACHE_OF_A_FULL_DISK";

    /// A limit on the size of files simulates a full disk.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_no_error() {
        if let Some(folder) = std::env::var_os(FULL) {
            let cache = Cache::open(folder, 1 << 20).unwrap();
            assert_eq!(fs::read(cache.get(&key(1), ".o").unwrap().unwrap()).unwrap(), content(1));
            let made = cache.get_or_make(&key(2), ".o", |path| {
                fs::write(path, vec![2; 4000])?;
                // SAFETY: the limit applies to this process, which ends with this test, and the signal that reports it
                // is ignored.
                unsafe {
                    libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
                    let limit = libc::rlimit { rlim_cur: 3000, rlim_max: 3000 };
                    assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit), 0);
                }
                Ok::<(), io::Error>(())
            });
            let made = made.unwrap();
            assert_eq!(made.not_cached().unwrap().kind(), io::ErrorKind::FileTooLarge);
            assert_eq!(fs::read(made.path()).unwrap().len(), 4000);
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), 1 << 20).unwrap();
        cache.insert(&key(1), ".o", &content(1)).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "artifact::cache::users::a_full_disk_is_no_error"]).env(FULL, folder.path());
        let output = child.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(names.iter().all(|name| !name.to_string_lossy().starts_with(".unfinished-")), "{names:?}");
        assert_eq!(files(folder.path()).len(), 1);
    }
}

#[test]
fn keys_are_those_of_all_that_decides_the_code() {
    let signature: Signature = "f(x: Tensor([n], float32))".parse().unwrap();
    let other: Signature = "f(x: Tensor([n], float64))".parse().unwrap();
    let placed = signature.clone().with_location(Part::Param(0), SourceLocation::new("a.py", 1, "f")).unwrap();
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
        LibraryBuilder::new().function(&signature.clone().with_doc(""), &kernel("k")),
        LibraryBuilder::new().function(&signature.clone().with_doc("k"), &kernel("k")),
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

    /// The directory for the processes of the test below.
    const FOLDER: &str = "TEST_OF_A_CACHE_OF_MANY_PROCESSES";
    const KEYS: u64 = 1000;

    /// Each process requests every key, in its own order.
    fn work(folder: &Path) {
        // so small that artifacts are evicted while others read them
        let cache = Cache::open(folder, 2_000_000).unwrap();
        let start = u64::from(std::process::id());
        for step in 0..KEYS {
            let number = (start + step * 383) % KEYS;
            let path = cached(cache.get_or_make(&key(number), ".bin", make(number)).unwrap());
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
        // no remaining artifact is corrupt
        let cache = Cache::open(folder.path(), u64::MAX).unwrap();
        let found = (0..KEYS).filter_map(|number| Some((number, cache.get(&key(number), ".bin").unwrap()?)));
        let count = found.map(|(number, path)| assert!(fs::read(path).unwrap() == content(number))).count();
        assert!(count > 50, "{count}");
    }
}
