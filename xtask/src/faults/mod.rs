//! Faults of the system: system calls and allocations that fail in turn, full disks, and programs that are killed. Also
//! scale. The programs are in `tests/injected` and `tests/scale`.

#[cfg(target_os = "linux")]
mod linux;
mod scale;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(target_os = "linux")]
mod system_calls;

use crate::command::{Tests, cargo, target_folder};
use crate::run::Failure;

pub use scale::scale;

type Result<T = Tests> = std::result::Result<T, Failure>;

fn failure(what: impl Into<String>) -> Failure {
    Failure { what: what.into(), tests: Tests::default() }
}

/// Each system call of each scenario fails in turn, and the program is killed before it. Then disks are full.
pub fn faults() -> Result {
    #[cfg(target_os = "linux")]
    return linux::faults();
    #[cfg(not(target_os = "linux"))]
    Err(failure("only Linux lets another process answer system calls"))
}

/// A short part of that, for each change.
pub fn some_faults() -> Result {
    #[cfg(target_os = "linux")]
    return linux::some_faults();
    #[cfg(not(target_os = "linux"))]
    Ok(Tests::default())
}

/// Each allocation of each scenario fails in turn, and of the runtime's C API.
pub fn allocations() -> Result {
    #[cfg(target_os = "linux")]
    return linux::allocations();
    #[cfg(not(target_os = "linux"))]
    Err(failure("allocations fail by the dynamic loader of Linux"))
}

/// Programs that write files are killed at random moments.
pub fn kills() -> Result {
    #[cfg(target_os = "linux")]
    return linux::kills();
    #[cfg(not(target_os = "linux"))]
    Err(failure("the scenarios are those of Linux"))
}

/// The options of a build for programs that run thousands of times.
const RELEASE: &[&str] = &["--release", "--features", "libwild"];

/// Builds an example, and returns its path.
fn built(example: &str, options: &[&str]) -> Result<String> {
    cargo(&[&["build", "--example", example], options].concat()).run()?;
    let folder = if options.contains(&"--release") { "release" } else { "debug" };
    Ok(target_folder().join(folder).join("examples").join(example).to_string_lossy().into_owned())
}
