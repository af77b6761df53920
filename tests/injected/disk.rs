//! Full and read-only file systems: a `tmpfs` of few pages in a mount namespace of this process.

use std::ffi::{CString, c_ulong};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::outputs;
use crate::scenarios::Scenario;
use crate::{Folders, Result, with_sources};

/// The number of sizes at which a scenario must succeed before the sizes are enough.
const ENOUGH: u32 = 3;
const PAGE: usize = 4096;
/// The size in pages with which everything works.
const LARGE: usize = 4096;

/// Runs the scenario on disks of ever more pages, then on a read-only one.
pub fn run(scenario: &Scenario, folders: &Folders) -> Result {
    // SAFETY: this process has one thread. It gets mounts of its own.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(format!("no mounts of its own: {}", io::Error::last_os_error()).into());
    }
    mount(None, Path::new("/"), libc::MS_REC | libc::MS_PRIVATE, None)?;
    fs::create_dir_all(&folders.out)?;
    let (mut runs, mut successes, mut errors, mut last) = (0, 0, 0, String::new());
    for pages in scenario.outputs.len() + 1.. {
        with_disk(&folders.out, pages, || {
            outputs::put_old(scenario, folders)?;
            let result = (scenario.run)(folders);
            outputs::check(scenario, folders, result.is_ok())?;
            let left = outputs::unfinished(&folders.out)?;
            if !left.is_empty() {
                return Err(format!("left {left:?}").into());
            }
            match result {
                Ok(()) => successes += 1,
                Err(error) => (errors, last) = (errors + 1, with_sources(&*error)),
            }
            // more space comes, and everything works
            resize(&folders.out, LARGE)?;
            (scenario.run)(folders)?;
            outputs::check(scenario, folders, true)
        })
        .map_err(|error| format!("{} on {pages} pages: {error}", scenario.name))?;
        runs += 1;
        if successes == ENOUGH {
            break;
        }
    }
    println!("{:<10} {runs} sizes of disks: {errors} errors (the last: {last}), {successes} successes", scenario.name);
    read_only(scenario, folders)
}

fn read_only(scenario: &Scenario, folders: &Folders) -> Result {
    with_disk(&folders.out, LARGE, || {
        outputs::put_old(scenario, folders)?;
        mount(None, &folders.out, libc::MS_REMOUNT | libc::MS_RDONLY, None)?;
        let result = (scenario.run)(folders);
        outputs::check(scenario, folders, result.is_ok())?;
        let result = result.map_or_else(|error| with_sources(&*error), |()| "success".to_owned());
        println!("{:<10} read-only: {result}", scenario.name);
        Ok(())
    })
}

/// Runs `work` with an empty disk of so many pages at a directory.
fn with_disk(at: &Path, pages: usize, work: impl FnOnce() -> Result) -> Result {
    mount(Some(c"tmpfs"), at, 0, Some(pages))?;
    let result = work();
    let path = CString::new(at.as_os_str().as_bytes())?;
    // SAFETY: the path is a C string.
    match unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) } {
        0 => result,
        _ => Err(io::Error::last_os_error().into()),
    }
}

fn resize(at: &Path, pages: usize) -> Result {
    mount(None, at, libc::MS_REMOUNT, Some(pages))
}

fn mount(kind: Option<&std::ffi::CStr>, at: &Path, flags: c_ulong, pages: Option<usize>) -> Result {
    let at = CString::new(at.as_os_str().as_bytes())?;
    let size = pages.map(|pages| CString::new(format!("size={}", pages * PAGE))).transpose()?;
    let kind = kind.map_or(std::ptr::null(), |kind| kind.as_ptr());
    let size = size.as_ref().map_or(std::ptr::null(), |size| size.as_ptr());
    // SAFETY: all pointers are to C strings, or NULL where the system allows it.
    match unsafe { libc::mount(kind, at.as_ptr(), kind, flags, size.cast()) } {
        0 => Ok(()),
        _ => Err(format!("mount: {}", io::Error::last_os_error()).into()),
    }
}
