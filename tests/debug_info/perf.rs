//! Files for `perf`, read back.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tvm_ffi_codegen::Backend;
use tvm_ffi_codegen::engine::{Jit, Perf};

use super::program;

extern "C" fn kernel(x: i64) -> i64 {
    x
}

#[test]
fn a_map_names_the_functions() {
    let path = format!("/tmp/perf-{}.map", std::process::id());
    for &backend in Backend::ALL {
        let jit =
            Jit::builder().backend(backend).symbol("kernel", kernel as *const u8).perf(Perf::Map).build().unwrap();
        let code = jit.load(&program::module()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let named = |name: &str, address: Option<*const u8>| {
            text.lines().any(|line| {
                let mut parts = line.splitn(3, ' ');
                let mut number = || usize::from_str_radix(parts.next().unwrap(), 16).unwrap();
                let (start, size) = (number(), number());
                let here = address.is_none_or(|address| address.addr() == start);
                parts.next() == Some(name) && here && size > 0 && code.contains(std::ptr::without_provenance(start))
            })
        };
        assert!(named("outer [traced]", code.function("traced")), "{backend}: {text}");
        assert!(named("inner [middle]", None), "{backend}: {text}");
    }
    fs::remove_file(path).unwrap();
}

/// Reads numbers and strings from the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (front, rest) = self.0.split_at(count);
        self.0 = rest;
        front
    }

    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.bytes(4).try_into().unwrap())
    }

    fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.bytes(8).try_into().unwrap())
    }

    fn text(&mut self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap();
        let text = String::from_utf8(self.bytes(end).to_vec()).unwrap();
        self.bytes(1);
        text
    }
}

#[test]
fn a_dump_has_names_lines_and_code() {
    let process = std::process::id();
    let folder = std::env::var_os("JITDUMPDIR").map_or_else(std::env::temp_dir, Into::into);
    let path = folder.join(format!("jit-{process}.dump"));
    let mut loaded = Vec::new();
    for &backend in Backend::ALL {
        let builder = Jit::builder().backend(backend).symbol("kernel", kernel as *const u8);
        loaded.push(builder.perf(Perf::JitDump).build().unwrap().load(&program::module()).unwrap());
    }
    let bytes = fs::read(&path).unwrap();
    let mut file = Reader(&bytes);
    // the header: magic number, version, header size, machine, padding, process
    assert_eq!((file.u32(), file.u32(), file.u32()), (0x4A69_5444, 1, 40));
    let machine = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    assert_eq!((file.u32(), file.u32(), file.u32()), (machine, 0, process));
    let (mut time, flags) = (file.u64(), file.u64());
    assert_eq!(flags, 0);

    // for each address, the source locations that precede its code; they are removed when the code is read
    let mut places: BTreeMap<u64, Vec<(u64, String)>> = BTreeMap::new();
    let mut functions = Vec::new();
    while !file.0.is_empty() {
        let (kind, size, at) = (file.u32(), file.u32(), file.u64());
        assert!(at >= time);
        time = at;
        let mut record = Reader(file.bytes(size as usize - 16));
        match kind {
            0 => {
                assert_eq!(record.u32(), process);
                let (_thread, address) = (record.u32(), record.u64());
                assert_eq!(record.u64(), address);
                let (size, index, name) = (record.u64(), record.u64(), record.text());
                assert_eq!((index, record.0.len() as u64), (functions.len() as u64, size));
                functions.push((name, address, record.0.to_vec(), places.remove(&address).unwrap_or_default()));
            }
            2 => {
                let (address, count) = (record.u64(), record.u64());
                let entry = |_| {
                    let (address, line, column) = (record.u64(), record.u32(), record.u32());
                    assert_eq!(column, 0);
                    (address, format!("{}:{line}", record.text()))
                };
                let entries: Vec<_> = (0..count).map(entry).collect();
                places.insert(address, entries);
            }
            _ => panic!("a record of kind {kind}"),
        }
    }
    assert!(places.is_empty());
    for code in &loaded {
        let at = |name: &str| {
            let here = |address: u64| code.contains(std::ptr::without_provenance(address as usize));
            functions.iter().find(|(known, address, ..)| known == name && here(*address)).unwrap()
        };
        let (_, address, bytes, lines) = at("outer [traced]");
        let traced = code.function("traced").unwrap();
        assert_eq!(*address, traced.addr() as u64);
        // SAFETY: the function is loaded, and at least one byte long.
        assert_eq!(bytes[0], unsafe { traced.read() });
        assert!(lines.iter().all(|(at, place)| at >= address && place == "/demo/model.dsl:3"), "{lines:?}");
        let (_, _, _, lines) = at("inner [middle]");
        let lines: Vec<&str> = lines.iter().map(|(_, place)| &**place).collect();
        assert!(lines.contains(&"/demo/model.dsl:7") && lines.contains(&"library.dsl:12"), "{lines:?}");
    }
    fs::remove_file(path).unwrap();
}

/// The environment variable applies if the engine doesn't state anything. This needs its own process.
#[test]
fn the_environment_variable_asks_for_a_file() {
    let run = |value: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "debug_info::running::a_kernel_is_called"]).env("TVM_FFI_CODEGEN_PERF", value);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        (child.id(), child.wait_with_output().unwrap())
    };
    let (process, output) = run("map");
    let path = format!("/tmp/perf-{process}.map");
    assert!(output.status.success(), "{output:?}");
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().filter(|line| line.ends_with(" inner [middle]")).count(), Backend::ALL.len(), "{text}");
    fs::remove_file(path).unwrap();

    let (_, output) = run("everything");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    assert!(!output.status.success());
    assert!(text.contains("TVM_FFI_CODEGEN_PERF") && text.contains("everything"), "{text}");
}

/// For the processes of the test below: the object that blocks the path of the file.
const IN_THE_WAY: &str = "TEST_OF_FILES_FOR_PERF";

/// Creates an obstacle at the path of a file for `perf`, and compiles. The directory has a file of the user's that a
/// link may refer to.
fn compile_with(in_the_way: &str) {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = std::env::current_dir().unwrap();
    let process = std::process::id();
    let victim = folder.join("victim");
    for (perf, path) in [
        (Perf::Map, PathBuf::from(format!("/tmp/perf-{process}.map"))),
        (Perf::JitDump, folder.join(format!("jit-{process}.dump"))),
    ] {
        let result = || {
            let builder = Jit::builder().symbol("kernel", kernel as *const u8).perf(perf);
            builder.build().unwrap().load(&program::module()).map(drop).map_err(|error| {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                format!("{error}: {}", cause.unwrap_or_default())
            })
        };
        let refused = |words: &str| {
            let error = result().unwrap_err();
            assert!(error.contains(&path.display().to_string()) && error.contains(words), "{error}");
            assert_eq!(fs::read(&victim).unwrap(), b"precious");
        };
        match in_the_way {
            "link" => {
                symlink(&victim, &path).unwrap();
                refused("");
            }
            "broken link" => {
                symlink(folder.join("new"), &path).unwrap();
                refused("");
                assert!(!folder.join("new").exists());
            }
            "hard link" => {
                // hard links must be on one file system
                let victim = path.with_file_name(format!("tvm-ffi-victim-{process}"));
                fs::write(&victim, "precious").unwrap();
                fs::hard_link(&victim, &path).unwrap();
                refused("it is there already");
                assert_eq!(fs::read(&victim).unwrap(), b"precious");
                fs::remove_file(victim).unwrap();
            }
            "shared" => {
                fs::write(&path, "of others").unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
                refused("it is there already");
            }
            "fifo" => {
                assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
                refused("it is there already");
            }
            "locked" if perf == Perf::JitDump => {
                let file = fs::File::create(&path).unwrap();
                file.lock().unwrap();
                refused("another code generator of this process writes to it");
            }
            _ => {
                fs::write(&path, "of this process\n").unwrap();
                result().unwrap();
                let bytes = fs::read(&path).unwrap();
                assert!(bytes.starts_with(b"of this process\n") == (perf == Perf::Map), "{perf:?}");
                assert!(bytes.windows(5).any(|name| name == b"outer"));
            }
        }
        fs::remove_file(path).unwrap();
    }
}

/// The directory for temporary files is shared, so another user may have created the file for `perf`.
#[test]
fn files_of_others_are_left_alone() {
    if let Ok(in_the_way) = std::env::var(IN_THE_WAY) {
        return compile_with(&in_the_way);
    }
    for in_the_way in ["link", "broken link", "hard link", "shared", "fifo", "locked", "nothing"] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("victim"), "precious").unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "debug_info::perf::files_of_others_are_left_alone"]).env(IN_THE_WAY, in_the_way);
        let output = command.env("JITDUMPDIR", folder.path()).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{in_the_way}: {}", String::from_utf8_lossy(&output.stdout));
    }
}
