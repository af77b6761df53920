//! The steps on Linux.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::{RELEASE, Result, built, failure, system_calls};
use crate::command::{Cmd, Tests, cargo, cmd, root, target_folder};
use crate::hosts;

/// The number of kills, if `XTASK_KILLS` states no other.
const KILLS: &str = "10000";

fn folder() -> PathBuf {
    target_folder().join("faults")
}

/// The program in a mode, with a folder of its own, where its temporary files are too.
pub(super) fn in_mode(program: &str, words: &[&str], folder: &Path) -> Cmd {
    let (own, temporary) = (folder.to_string_lossy(), folder.join("tmp"));
    let command = cmd(program, words).args(&[&*own]).env("TVM_FFI_BACKTRACE", "0").env("RUST_BACKTRACE", "0");
    command.env("TMPDIR", &temporary.to_string_lossy())
}

/// Empties a folder, and lets the scenario make its inputs there.
pub(super) fn set_up(program: &str, scenario: &str, folder: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder.join("tmp")).map_err(|error| failure(format!("{}: {error}", folder.display())))?;
    let done = in_mode(program, &["setup", scenario], folder).into_command().output();
    let done = done.map_err(|error| failure(format!("{program}: {error}")))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(failure(format!("{scenario}: {}", String::from_utf8_lossy(&done.stderr)))),
    }
}

/// Those that `XTASK_FAULTS` names, separated by commas; all if it names none of them.
fn chosen(all: Vec<&str>) -> Vec<&str> {
    let chosen = std::env::var("XTASK_FAULTS").unwrap_or_default();
    let named: Vec<&str> = all.iter().copied().filter(|name| chosen.split(',').any(|part| part == *name)).collect();
    if named.is_empty() { all } else { named }
}

/// Does pieces of work on as many threads as the machine has. Each thread has a folder of its own.
pub(super) fn on_threads<W: Sync, T: Send>(work: &[W], each: impl Fn(&W, &Path) -> Result<T> + Sync) -> Result<Vec<T>> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let worker = |number: usize| -> Result<()> {
        let folder = folder().join(number.to_string());
        while let Some(piece) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = each(piece, &folder)?;
            done.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(result);
        }
        Ok(())
    };
    let (worker, count) = (&worker, thread::available_parallelism().map_or(1, usize::from));
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|number| scope.spawn(move || worker(number))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(failure("a worker panicked"))))
    })?;
    Ok(done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

fn scenarios(program: &str) -> Result<Vec<String>> {
    let listed = cmd(program, &["list"]).read()?;
    Ok(chosen(listed.lines().collect()).into_iter().map(str::to_owned).collect())
}

/// Some scenarios and ways, in the build that the tests share.
pub(super) fn some_faults() -> Result {
    let program = built("injected", &[])?;
    system_calls::every_call(
        &program,
        &["emit", "archive", "cache"],
        &["write ENOSPC", "rename EIO", "fsync EIO", "kill"],
    )
}

pub(super) fn faults() -> Result {
    let program = built("injected", RELEASE)?;
    let scenarios = scenarios(&program)?;
    let names: Vec<&str> = scenarios.iter().map(String::as_str).collect();
    let mut tests = system_calls::every_call(&program, &names, &chosen(system_calls::ways()))?;
    println!("\nfull disks:");
    for scenario in &scenarios {
        let folder = folder().join("disk");
        set_up(&program, scenario, &folder)?;
        in_mode(&program, &["disk", scenario], &folder).run()?;
        tests.passed += 1;
    }
    Ok(tests)
}

pub(super) fn allocations() -> Result {
    let program = built("injected", RELEASE)?;
    let at = |name: &str| folder().join(name).to_string_lossy().into_owned();
    let preloaded = at("malloc.so");
    fs::create_dir_all(folder()).map_err(|error| failure(format!("{}: {error}", folder().display())))?;
    let warnings = ["-O1", "-Wall", "-Wextra", "-Werror"];
    let library = ["-shared", "-fPIC", "tests/injected/malloc.c", "-o", &preloaded];
    cmd("cc", &[&warnings[..], &library].concat()).run()?;

    // a debug build allocates each object, and reuses no blocks
    cargo(&["build", "--package", "tvm-ffi-runtime-c"]).run()?;
    let (runtime, include) = (target_folder().join("debug"), hosts::upstream().join("include"));
    let (runtime, include, in_c) = (runtime.to_string_lossy(), include.to_string_lossy(), at("allocations"));
    let (search, find) = (format!("-L{runtime}"), format!("-Wl,-rpath,{runtime}"));
    let program_of_c = ["-isystem", &*include, "tests/injected/allocations.c", "-o", &in_c];
    let libraries = [&*search, "-ltvm_ffi_runtime", &*find, "-ldl"];
    cmd("cc", &[&warnings[..], &program_of_c, &libraries].concat()).run()?;
    let mut tests = Tests::default();
    for backend in ["cranelift", "llvm"] {
        let library = root().join(format!("fixtures/artifacts/checks-{backend}-0.1.0.so"));
        let run = cmd(&in_c, &[&*library.to_string_lossy()]).env("LD_PRELOAD", &preloaded);
        tests.passed += run.env("TVM_FFI_BACKTRACE", "0").run()?.stdout.lines().count() as u64;
    }

    let printed = on_threads(&scenarios(&program)?, |scenario, folder| {
        set_up(&program, scenario, folder)?;
        let run = in_mode(&program, &["allocations", scenario], folder).env("LD_PRELOAD", &preloaded);
        Ok(run.run()?.stdout.lines().count() as u64)
    })?;
    tests.passed += printed.iter().sum::<u64>();
    Ok(tests)
}

pub(super) fn kills() -> Result {
    let program = built("injected", RELEASE)?;
    let folder = folder().join("kills");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("tmp")).map_err(|error| failure(format!("{}: {error}", folder.display())))?;
    let count = std::env::var("XTASK_KILLS").unwrap_or_else(|_| KILLS.to_owned());
    let printed = in_mode(&program, &["kills", &count], &folder).run()?.stdout;
    Ok(Tests { passed: printed.lines().count() as u64, ..Tests::default() })
}
