//! Lets call n of a system call fail, for every n until there are no more.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_long};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Output;

use super::linux::{in_mode, on_threads, set_up};
use super::supervisor::{Calls, Ended, Fault, run};
use super::{Result, failure};
use crate::command::Tests;

/// A way to fail: system calls that do the same, and the error.
struct Way {
    name: &'static str,
    calls: Calls,
    fault: Fault,
    /// The program may also end: without memory, Rust's collections do that.
    may_abort: bool,
}

const fn way(name: &'static str, calls: &'static [c_long], error: c_int) -> Way {
    Way { name, calls: Calls { numbers: calls, of_files: false }, fault: Fault::Error(error), may_abort: false }
}

/// Only calls on regular files fail.
const fn of_files(name: &'static str, calls: &'static [c_long], error: c_int) -> Way {
    Way { name, calls: Calls { numbers: calls, of_files: true }, fault: Fault::Error(error), may_abort: false }
}

const fn of_memory(name: &'static str, calls: &'static [c_long]) -> Way {
    Way { may_abort: true, ..way(name, calls, libc::ENOMEM) }
}

const OPEN: &[c_long] = &[libc::SYS_open, libc::SYS_openat];
const WRITE: &[c_long] = &[libc::SYS_write, libc::SYS_writev, libc::SYS_pwrite64];
const COPY: &[c_long] = &[libc::SYS_copy_file_range, libc::SYS_sendfile];
const RENAME: &[c_long] =
    &[libc::SYS_rename, libc::SYS_renameat, libc::SYS_renameat2, libc::SYS_link, libc::SYS_linkat];
const SYNC: &[c_long] = &[libc::SYS_fsync, libc::SYS_fdatasync];
const UNLINK: &[c_long] = &[libc::SYS_unlink, libc::SYS_unlinkat, libc::SYS_rmdir];
const STAT: &[c_long] = &[libc::SYS_stat, libc::SYS_fstat, libc::SYS_newfstatat, libc::SYS_statx];
const START: &[c_long] = &[libc::SYS_clone, libc::SYS_clone3, libc::SYS_fork, libc::SYS_vfork];
const SIZE: &[c_long] = &[libc::SYS_ftruncate, libc::SYS_fallocate];

/// The ways of failing. No program ends at `kill` by itself.
const WAYS: &[Way] = &[
    of_memory("mmap ENOMEM", &[libc::SYS_mmap, libc::SYS_mremap]),
    of_memory("mprotect ENOMEM", &[libc::SYS_mprotect]),
    of_memory("munmap ENOMEM", &[libc::SYS_munmap]),
    way("open EMFILE", OPEN, libc::EMFILE),
    way("open EROFS", OPEN, libc::EROFS),
    of_files("write ENOSPC", WRITE, libc::ENOSPC),
    of_files("write EIO", WRITE, libc::EIO),
    of_files("write EINTR", WRITE, libc::EINTR),
    way("copy ENOSPC", COPY, libc::ENOSPC),
    way("ftruncate ENOSPC", SIZE, libc::ENOSPC),
    way("rename EIO", RENAME, libc::EIO),
    way("rename ENOSPC", RENAME, libc::ENOSPC),
    way("fsync EIO", SYNC, libc::EIO),
    way("mkdir ENOSPC", &[libc::SYS_mkdir, libc::SYS_mkdirat], libc::ENOSPC),
    way("unlink EIO", UNLINK, libc::EIO),
    of_files("read EIO", &[libc::SYS_read, libc::SYS_pread64], libc::EIO),
    way("stat EIO", STAT, libc::EIO),
    way("getdents EIO", &[libc::SYS_getdents64], libc::EIO),
    way("lseek EIO", &[libc::SYS_lseek], libc::EIO),
    way("memfd_create EMFILE", &[libc::SYS_memfd_create], libc::EMFILE),
    way("clone EAGAIN", START, libc::EAGAIN),
    way("execve ENOENT", &[libc::SYS_execve], libc::ENOENT),
    way("pipe EMFILE", &[libc::SYS_pipe, libc::SYS_pipe2], libc::EMFILE),
];

/// The calls before which a program is killed: those that change files, and what begins them.
const KILL: Way =
    Way { name: "kill", calls: Calls { numbers: CHANGES, of_files: false }, fault: Fault::Kill, may_abort: false };

const CHANGES: &[c_long] = &[
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_copy_file_range,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fsync,
    libc::SYS_close,
    libc::SYS_rename,
    libc::SYS_renameat2,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_rmdir,
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    libc::SYS_fchmod,
    libc::SYS_utimensat,
];

/// The outcomes of the runs of one scenario in one way.
#[derive(Default)]
struct Outcomes {
    runs: usize,
    successes: usize,
    errors: usize,
    aborts: usize,
    killed: usize,
    /// Runs that left a temporary file or directory.
    left: usize,
    /// The messages of the errors, with their numbers.
    messages: BTreeMap<String, usize>,
    failures: Vec<String>,
}

/// The names of all ways.
pub fn ways() -> Vec<&'static str> {
    WAYS.iter().chain([&KILL]).map(|way| way.name).collect()
}

/// These ways in these scenarios.
pub fn every_call(program: &str, scenarios: &[&str], ways: &[&str]) -> Result {
    let ways: Vec<&Way> = WAYS.iter().chain([&KILL]).filter(|way| ways.contains(&way.name)).collect();
    let work: Vec<(&str, &Way)> = scenarios.iter().flat_map(|name| ways.iter().map(|way| (*name, *way))).collect();
    let done = on_threads(&work, |(scenario, way), folder| {
        let outcomes = one_way(program, scenario, way, folder)?;
        let mut text = row(scenario, way, &outcomes);
        for (message, count) in &outcomes.messages {
            text.push_str(&format!("\n    {count:>5}  {}", message.chars().take(300).collect::<String>()));
        }
        outcomes.failures.iter().for_each(|failure| text.push_str(&format!("\n    FAILED {failure}")));
        println!("{text}");
        Ok((*scenario, *way, outcomes))
    })?;
    summary(&done)
}

fn row(scenario: &str, way: &Way, outcomes: &Outcomes) -> String {
    let Outcomes { runs, successes, errors, aborts, killed, left, failures, .. } = outcomes;
    format!(
        "{scenario:<10} {:<20} {runs:>6} runs {successes:>6} succeeded {errors:>6} errors {aborts:>5} aborts \
         {killed:>6} killed {left:>5} left {:>4} failed",
        way.name,
        failures.len()
    )
}

fn summary(done: &[(&str, &Way, Outcomes)]) -> Result {
    println!("\nall:");
    let mut tests = Tests::default();
    let mut failures = Vec::new();
    for (scenario, way, outcomes) in done {
        println!("{}", row(scenario, way, outcomes));
        tests.passed += (outcomes.runs - outcomes.failures.len()) as u64;
        tests.failed += outcomes.failures.len() as u64;
        failures.extend(outcomes.failures.first().map(|first| format!("{scenario}, {}: {first}", way.name)));
    }
    match failures.is_empty() {
        true => Ok(tests),
        false => Err(super::Failure { what: failures.join("\n"), tests }),
    }
}

/// Runs the scenario with call 1, 2, 3 and so on failing.
fn one_way(program: &str, scenario: &str, way: &Way, folder: &Path) -> Result<Outcomes> {
    set_up(program, scenario, folder)?;
    let mut outcomes = Outcomes::default();
    for nth in 1.. {
        let command = in_mode(program, &["run", scenario], folder).into_command();
        let ended = run(command, way.calls, nth, way.fault)
            .map_err(|error| failure(format!("{scenario}, call {nth}: {error}")))?;
        let is_last = !ended.was_injected;
        if is_last && ended.status.success() {
            break;
        }
        outcomes.runs += 1;
        if let Err(problem) =
            outcomes.note(&ended, way, || in_mode(program, &["check", scenario], folder).into_command().output())
        {
            let said = ended.stderr.lines().take(6).collect::<Vec<_>>().join(" | ");
            outcomes.failures.push(format!("call {nth}: {problem} ({}: {said})", ended.status));
        }
        if is_last {
            break;
        }
    }
    Ok(outcomes)
}

impl Outcomes {
    /// Counts the end of a run. After a sudden end, `check` runs the program that looks at the files.
    fn note(
        &mut self,
        ended: &Ended,
        way: &Way,
        check: impl Fn() -> io::Result<Output>,
    ) -> std::result::Result<(), String> {
        if ended.hung {
            return Err("it hangs".to_owned());
        }
        self.left += usize::from(ended.stdout.lines().any(|line| line.starts_with("left: ")));
        let outcome = ended.stdout.lines().find_map(|line| line.strip_prefix("outcome: "));
        match (ended.status.code(), ended.status.signal(), outcome) {
            (Some(0), _, Some("success")) => self.successes += 1,
            (Some(0), _, Some(message)) => {
                self.errors += 1;
                *self.messages.entry(in_general(message)).or_default() += 1;
            }
            (None, Some(libc::SIGABRT), _) if way.may_abort && is_orderly(&ended.stderr) => self.aborts += 1,
            (None, Some(libc::SIGKILL), _) if matches!(way.fault, Fault::Kill) => self.killed += 1,
            _ => return Err("it ends neither with success nor with an error".to_owned()),
        }
        if ended.status.signal().is_some() {
            let checked = check().map_err(|error| error.to_string())?;
            if !checked.status.success() {
                return Err(format!("afterwards: {}", String::from_utf8_lossy(&checked.stderr).trim_end()));
            }
        }
        Ok(())
    }
}

/// Whether the last words are those of Rust's standard library for missing memory: for an allocation, or for the stack
/// of a new thread's signal handler.
fn is_orderly(stderr: &str) -> bool {
    stderr.contains("memory allocation of ")
        || stderr.contains("failed to allocate an alternative stack")
        || stderr.contains("failed to set up alternative stack guard page")
}

/// A message without what differs from run to run: temporary names.
fn in_general(message: &str) -> String {
    let mut words: Vec<String> = message.split(' ').map(str::to_owned).collect();
    for word in &mut words {
        if let Some(start) = word.find(".tvm-ffi-").or_else(|| word.find(".unfinished-")).or_else(|| word.find("/tmp/"))
        {
            word.truncate(start);
            word.push_str("(temporary)");
        }
    }
    words.join(" ")
}
