//! Lets allocation n fail for every n, each in a child process. `malloc.c` must be preloaded.
//!
//! Rust's collections, and parts of the C library, end the process when an allocation fails. It must then end by their
//! handlers, and every file must be whole. While a backtrace is taken, the standard library's handler waits forever for
//! a lock that its own thread holds (Rust 1.95): such a child is killed after its message.

use std::ffi::{c_int, c_long};
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;

use crate::children::Child;
use crate::outputs;
use crate::scenarios::Scenario;
use crate::{Folders, Result};

/// `fail_allocations_after` of `malloc.c`.
type FailAfter = extern "C" fn(c_long, c_int) -> c_long;

/// The scenario that takes backtraces.
const RAISE: &str = "raise";

/// The exit codes of a child.
const SUCCESS: u8 = 0;
const ERROR: u8 = 10;
/// No allocation has failed: there were fewer.
const ENOUGH: u8 = 11;
/// The scenario fails without a fault.
const BROKEN: u8 = 12;

pub fn run(scenario: &Scenario, folders: &Folders) -> Result {
    // SAFETY: the name is a C string.
    let fail_after = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"fail_allocations_after".as_ptr()) };
    if fail_after.is_null() {
        return Err("preload the library of malloc.c".into());
    }
    // SAFETY: the library defines the function with this prototype.
    let fail_after = unsafe { std::mem::transmute::<*mut std::ffi::c_void, FailAfter>(fail_after) };
    if scenario.name == RAISE {
        // The children inherit the debug information that the standard library has read. Reading it takes 200,000
        // allocations, and each would need a child.
        (scenario.run)(folders)?;
    }
    for only_one in [false, true] {
        every_allocation(scenario, folders, fail_after, only_one)?;
    }
    Ok(())
}

fn every_allocation(scenario: &Scenario, folders: &Folders, fail_after: FailAfter, only_one: bool) -> Result {
    let path = folders.out.with_file_name("stderr");
    let (mut successes, mut errors, mut aborts, mut stuck) = (0, 0, 0, 0);
    let is_ending = || fs::read_to_string(&path).is_ok_and(|said| is_orderly(&said));
    for count in 0.. {
        outputs::begin(scenario, folders)?;
        let child = Child::start(&File::create(&path)?, || attempt(scenario, folders, fail_after, count, only_one))?;
        let status = child.wait_or_kill(is_ending)?;
        let failed = |what: &str| {
            let said = fs::read_to_string(&path).unwrap_or_default();
            format!("{}, allocation {count}, only one: {only_one}: {what} ({status}: {})", scenario.name, said.trim())
        };
        match (status.code().and_then(|code| u8::try_from(code).ok()), status.signal()) {
            (Some(ENOUGH), _) => break,
            (Some(SUCCESS), _) => successes += 1,
            (Some(ERROR), _) => errors += 1,
            (Some(BROKEN), _) => return Err(failed("the scenario fails afterwards").into()),
            (None, Some(libc::SIGABRT)) if is_ending() => aborts += 1,
            (None, Some(libc::SIGKILL)) if scenario.name == RAISE && is_ending() => stuck += 1,
            _ => return Err(failed("expected an error, or an abort by a handler").into()),
        }
        outputs::check(scenario, folders, status.code() == Some(SUCCESS.into()))
            .map_err(|error| failed(&error.to_string()))?;
    }
    println!(
        "{:<10} {} {:>7} allocations {successes:>7} succeeded {errors:>7} errors {aborts:>7} aborts {stuck:>7} stuck",
        scenario.name,
        if only_one { "only one fails      " } else { "all fail from then on" },
        successes + errors + aborts + stuck
    );
    Ok(())
}

/// Whether the last words are those of Rust's handler or of the C library.
fn is_orderly(stderr: &str) -> bool {
    stderr.contains("memory allocation of ") || stderr.contains("Fatal glibc error")
}

fn attempt(scenario: &Scenario, folders: &Folders, fail_after: FailAfter, count: c_long, only_one: bool) -> u8 {
    fail_after(count, only_one.into());
    let result = (scenario.run)(folders);
    let failed = fail_after(-1, 0);
    let is_success = result.is_ok();
    drop(result);
    if failed == 0 {
        return if is_success { ENOUGH } else { BROKEN };
    }
    // everything works afterwards, in the same process
    if let Err(error) = (scenario.run)(folders) {
        eprintln!("{error}");
        return BROKEN;
    }
    if is_success { SUCCESS } else { ERROR }
}
