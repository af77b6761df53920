//! A module of 2 GiB, packed and loaded: memory and time.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use crate::command::{Tests, Usage, cargo, cmd, root, target_folder};
use crate::run::Failure;

/// The payload's size in bytes.
const SIZE: usize = 2 << 30;
/// The maximum resident memory of packing, in KiB.
const MAX_PEAK_KIB: u64 = 64 << 10;
/// The number of measurements of each time.
const ROUNDS: usize = 5;

/// Packs, links and loads it. Prints the times, and asserts nothing about them.
pub fn payload() -> Result<Tests, Failure> {
    let folder = root().join("target/payload");
    let result = fs::create_dir_all(&folder).map_err(|e| failure(format!("{}: {e}", folder.display())));
    let result = result.and_then(|()| in_folder(&folder));
    // remove gigabytes, even after a failure
    fs::remove_dir_all(&folder).map_err(|e| failure(format!("{}: {e}", folder.display())))?;
    result
}

fn in_folder(folder: &Path) -> Result<Tests, Failure> {
    let [payload, copy, object, library] =
        ["payload", "copy", "bin.o", "library.so"].map(|name| folder.join(name).to_string_lossy().into_owned());
    cargo(&["build", "--release", "--package", "tvm-ffi-codegen-cli", "--package", "host-bundled"]).run()?;
    let program = |name: &str| target_folder().join("release").join(name).to_string_lossy().into_owned();
    let (codegen, host) = (program("tvm-ffi-codegen"), program("payload"));
    write_payload(&payload).map_err(|e| failure(format!("{payload}: {e}")))?;

    let import = format!("payload={payload}");
    let (mut copies, mut packs, mut peak_kib) = (Vec::new(), Vec::new(), 0);
    for round in 0..2 * ROUNDS {
        // neither pays for writes that the other one has left pending
        settle(&copy)?;
        settle(&object)?;
        // cp, pack, pack, cp, ...: neither is always the second
        if matches!(round % 4, 0 | 3) {
            copies.push(cmd("cp", &[&payload, &copy]).measure()?.time);
            continue;
        }
        let Usage { time, peak_kib: peak } = cmd(&codegen, &["pack", "--import", &import, "-o", &object]).measure()?;
        packs.push(time);
        peak_kib = peak_kib.max(peak);
    }
    println!("cp: {copies:.2?}; pack: {packs:.2?}");
    let (copied, packed) = (least(&copies), least(&packs));
    println!("least: cp {copied:.2?}, pack {packed:.2?}, {:.2} of the speed of cp", copied.div_duration_f64(packed));
    println!("peak resident memory of pack: {peak_kib} KiB");
    if peak_kib >= MAX_PEAK_KIB {
        return Err(failure(format!("packing takes {peak_kib} KiB, expected less than {MAX_PEAK_KIB}")));
    }

    settle(&copy)?;
    settle(&object)?;
    cmd(&codegen, &["pack", "--import", &import, "-o", &object]).run()?;
    let options = ["--signature", "check(n: int64)", "--object", &object, "-o", &library];
    let Usage { time, peak_kib } = cmd(&codegen, &[&["wrap"], &options[..]].concat()).measure()?;
    println!("wrapped and linked in {time:.2?}; peak resident memory of any process: {peak_kib} KiB");
    settle(&object)?;
    cmd(&host, &[&library, &payload]).run()?;
    Ok(Tests { passed: 2, ..Tests::default() })
}

fn failure(what: String) -> Failure {
    Failure { what, tests: Tests::default() }
}

/// Writes bytes without two equal megabytes.
fn write_payload(path: &str) -> io::Result<()> {
    let mut file = File::create(path)?;
    let mut state = 1u64;
    let mut chunk = vec![0; 1 << 20];
    for _ in 0..SIZE / chunk.len() {
        for word in chunk.chunks_exact_mut(8) {
            // xorshift64, by Marsaglia
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
        file.write_all(&chunk)?;
    }
    file.sync_all()
}

/// Removes an output, and waits until all else is on the disk.
fn settle(output: &str) -> Result<(), Failure> {
    match fs::remove_file(output) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failure(format!("{output}: {e}"))),
        _ => {}
    }
    cmd("sync", &[]).read().map(drop)
}

/// The minimum, since a busy disk only ever adds to a time, sometimes by a multiple.
fn least(times: &[Duration]) -> Duration {
    times.iter().copied().min().unwrap_or_default()
}
