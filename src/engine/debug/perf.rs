//! Files that describe generated code to Linux `perf`.
//!
//! A process has one file. It is created when first needed, and written under a lock. `perf` reads it after the process
//! has ended, so unloaded code stays in it.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use memmap2::{Mmap, MmapOptions};

use super::described::{Described, Locations};
use super::wanted::Perf;

/// Writes `perf` entries for functions at their in-memory addresses. Errors include the file's path.
pub(super) fn write(perf: Perf, functions: &[Described], locations: &Locations) -> Result<(), (PathBuf, io::Error)> {
    let file = match perf {
        Perf::Map => &MAP,
        Perf::JitDump => &DUMP,
    };
    let path = path(perf);
    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
    // after a fork the child creates its own file
    let is_ours = file.as_ref().is_some_and(|open: &Open| open.process == std::process::id());
    let done = (|| {
        if !is_ours {
            *file = Some(Open::new(perf, &path)?);
        }
        match (&mut *file, perf) {
            (Some(open), Perf::Map) => open.map(functions, locations),
            (Some(open), Perf::JitDump) => open.dump(functions, locations),
            (None, _) => Ok(()),
        }
    })();
    done.map_err(|e| (path, e))
}

/// Where `perf` looks for the file. A map is in `/tmp`. `perf` finds a dump wherever the process has mapped it. It is
/// in the directory of `JITDUMPDIR`, or in that for temporary files.
fn path(perf: Perf) -> PathBuf {
    let process = std::process::id();
    match perf {
        Perf::Map => PathBuf::from(format!("/tmp/perf-{process}.map")),
        Perf::JitDump => {
            let folder = std::env::var_os("JITDUMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
            folder.join(format!("jit-{process}.dump"))
        }
    }
}

static MAP: Mutex<Option<Open>> = Mutex::new(None);
static DUMP: Mutex<Option<Open>> = Mutex::new(None);

/// A file that is open for writing.
struct Open {
    file: File,
    process: u32,
    /// The number of functions written so far.
    count: u64,
    /// A mapping of the dump; `perf` finds the dump through it.
    _marker: Option<Mmap>,
}

impl Open {
    fn new(perf: Perf, path: &Path) -> io::Result<Self> {
        let (process, count) = (std::process::id(), 0);
        Ok(match perf {
            Perf::Map => Open { file: open_map(path)?, process, count, _marker: None },
            Perf::JitDump => {
                let mut file = create_dump(path)?;
                file.write_all(&header(process)?)?;
                // SAFETY: the mapping is never read.
                let marker = unsafe { MmapOptions::new().len(4096).map_exec(&file) }?;
                Open { file, process, count, _marker: Some(marker) }
            }
        })
    }

    /// Writes one line per function: address and size in hexadecimal, and the name.
    fn map(&mut self, functions: &[Described], locations: &Locations) -> io::Result<()> {
        let mut text = String::new();
        for function in functions {
            let (address, size) = (function.address, function.size);
            text.push_str(&format!("{address:x} {size:x} {}\n", shown(function, locations)));
        }
        self.file.write_all(text.as_bytes())
    }

    /// Writes jitdump records, version 1: for each function its lines, then its code.
    fn dump(&mut self, functions: &[Described], locations: &Locations) -> io::Result<()> {
        const CODE_LOAD: u32 = 0;
        const DEBUG_INFO: u32 = 2;
        let mut bytes = Vec::new();
        for function in functions {
            let address = function.address as u64;
            if !function.lines.is_empty() {
                let mut record = [address.to_ne_bytes(), (function.lines.len() as u64).to_ne_bytes()].concat();
                for lines in &function.lines {
                    let location = &locations[lines.location];
                    record.extend((address + u64::from(lines.start)).to_ne_bytes());
                    record.extend(location.line.to_ne_bytes());
                    // column
                    record.extend(0u32.to_ne_bytes());
                    record.extend(c_string(&location.file));
                }
                push(&mut bytes, DEBUG_INFO, &record)?;
            }
            let mut record = [self.process, thread()].map(u32::to_ne_bytes).concat();
            for word in [address, address, function.size as u64, self.count] {
                record.extend(word.to_ne_bytes());
            }
            record.extend(c_string(&shown(function, locations)));
            // SAFETY: the function's code is loaded, at this address and of this size.
            record.extend(unsafe { std::slice::from_raw_parts(function.pointer(), function.size) });
            push(&mut bytes, CODE_LOAD, &record)?;
            self.count += 1;
        }
        self.file.write_all(&bytes)
    }
}

/// Options to open a file in a directory that other users can write to: don't follow links, and don't wait for a FIFO.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

/// Opens the map. Other code generators in the process may write to it too.
fn open_map(path: &Path) -> io::Result<File> {
    let file = options().append(true).create(true).open(path)?;
    expect_own(&file.metadata()?)?;
    Ok(file)
}

/// Creates the dump and locks it while it is open, so it has one writer. An unlocked file belonged to an ended process
/// with the same id.
fn create_dump(path: &Path) -> io::Result<File> {
    let create = || -> io::Result<File> {
        let file = options().write(true).create_new(true).open(path)?;
        file.try_lock()?;
        Ok(file)
    };
    match create() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        created => return created,
    }
    let old = options().open(path)?;
    expect_own(&old.metadata()?)?;
    old.try_lock().map_err(|_| refused("another code generator of this process writes to it"))?;
    std::fs::remove_file(path)?;
    create()
}

/// Checks that another user can't have created the file: it is a regular file of this user with one link, and others
/// can't write to it.
fn expect_own(metadata: &Metadata) -> io::Result<()> {
    // SAFETY: it has no preconditions.
    let user = unsafe { libc::geteuid() };
    let is_own = metadata.is_file() && metadata.uid() == user && metadata.nlink() == 1 && metadata.mode() & 0o022 == 0;
    if is_own { Ok(()) } else { Err(refused("it is there already, and isn't a file that only this user writes to")) }
}

fn refused(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, problem)
}

/// The symbol, preceded by the function's name in the source.
fn shown(function: &Described, locations: &Locations) -> String {
    let source = function.first.map(|first| &locations[first].function);
    let name = match source {
        Some(source) if *source != function.name => format!("{source} [{}]", function.name),
        _ => function.name.clone(),
    };
    name.replace(['\n', '\0'], " ")
}

fn c_string(text: &str) -> Vec<u8> {
    let mut bytes = text.replace('\0', "\u{fffd}").into_bytes();
    bytes.push(0);
    bytes
}

/// The header of a dump.
fn header(process: u32) -> io::Result<Vec<u8>> {
    const MAGIC: u32 = 0x4A69_5444;
    const SIZE: u32 = 40;
    let machine = if cfg!(target_arch = "x86_64") {
        object::elf::EM_X86_64
    } else if cfg!(target_arch = "aarch64") {
        object::elf::EM_AARCH64
    } else if cfg!(target_arch = "riscv64") {
        object::elf::EM_RISCV
    } else {
        object::elf::EM_S390
    };
    let mut bytes = [MAGIC, 1, SIZE, u32::from(machine), 0, process].map(u32::to_ne_bytes).concat();
    bytes.extend(now()?.to_ne_bytes());
    // flags
    bytes.extend(0u64.to_ne_bytes());
    Ok(bytes)
}

/// Adds a record: its kind, its size including this header, the time, and its contents.
fn push(bytes: &mut Vec<u8>, kind: u32, record: &[u8]) -> io::Result<()> {
    let size = u32::try_from(record.len() + 16).map_err(io::Error::other)?;
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(size.to_ne_bytes());
    bytes.extend(now()?.to_ne_bytes());
    bytes.extend(record);
    Ok(())
}

/// The time in nanoseconds, from the clock that `perf record -k 1` uses.
fn now() -> io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists, and the pointer is to a local struct.
    match unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) } {
        0 => Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64),
        _ => Err(io::Error::last_os_error()),
    }
}

fn thread() -> u32 {
    // SAFETY: it has no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}
