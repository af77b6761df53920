//! Scenarios for `cargo xtask soak --only faults` and `--only kills`, whose system calls and allocations fail in turn.
//!
//! ```text
//! injected list                   prints the names of the scenarios
//! injected setup SCENARIO FOLDER  makes what the scenario needs, and what its outputs must be
//! injected run SCENARIO FOLDER    runs it with a fault, checks the outputs, then runs it without a fault
//! injected check SCENARIO FOLDER  checks the outputs of a run that was ended, then runs it without a fault
//! injected allocations SCENARIO FOLDER  lets allocation n fail for every n, each in a child process
//! injected disk SCENARIO FOLDER   runs it on full disks and on a read-only one, as root
//! injected kills COUNT FOLDER     kills COUNT child processes at random moments, and checks their outputs each time
//! ```
#![allow(missing_docs, clippy::unwrap_used)]

mod allocations;
mod children;
mod disk;
mod kills;
mod outputs;
mod scenarios;
mod steps;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use scenarios::{SCENARIOS, Scenario};

/// The error of a scenario. Its message is what a user of the library would see.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
pub type Result<T = ()> = std::result::Result<T, Error>;

/// The directories of a scenario.
#[derive(Debug)]
pub struct Folders {
    /// Inputs, and outputs as they must be. Faults never touch it.
    pub reference: PathBuf,
    /// Where the scenario writes.
    pub out: PathBuf,
}

impl Folders {
    fn of(folder: &Path) -> Self {
        Folders { reference: folder.join("reference"), out: folder.join("out") }
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args[..] {
        ["list"] => {
            SCENARIOS.iter().for_each(|scenario| println!("{}", scenario.name));
            Ok(())
        }
        ["setup", name, folder] => find(name).and_then(|scenario| setup(scenario, &Folders::of(Path::new(folder)))),
        ["run", name, folder] => find(name).and_then(|scenario| run(scenario, &Folders::of(Path::new(folder)))),
        ["check", name, folder] => find(name).and_then(|scenario| check(scenario, &Folders::of(Path::new(folder)))),
        ["allocations", name, folder] => {
            find(name).and_then(|scenario| allocations::run(scenario, &Folders::of(Path::new(folder))))
        }
        ["disk", name, folder] => find(name).and_then(|scenario| disk::run(scenario, &Folders::of(Path::new(folder)))),
        ["kills", count, folder] => {
            count.parse().map_err(Error::from).and_then(|count| kills::run(&Folders::of(Path::new(folder)), count))
        }
        _ => Err("expected a mode and its arguments: see the file's head".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn find(name: &str) -> Result<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.name == name).ok_or_else(|| format!("no scenario {name}").into())
}

fn setup(scenario: &Scenario, folders: &Folders) -> Result {
    std::fs::create_dir_all(&folders.reference)?;
    (scenario.setup)(folders)
}

/// Runs the scenario once with a fault and once without. The first run may fail, but only with an error.
fn run(scenario: &Scenario, folders: &Folders) -> Result {
    outputs::begin(scenario, folders)?;
    mark(1);
    let first = (scenario.run)(folders);
    mark(0);
    match &first {
        Ok(()) => println!("outcome: success"),
        Err(error) if error.to_string().trim().is_empty() => return Err("an error without a message".into()),
        Err(error) => println!("outcome: {}", with_sources(&**error)),
    }
    outputs::check(scenario, folders, first.is_ok()).map_err(|error| format!("after the fault: {error}"))?;
    for left in outputs::unfinished(&folders.out)? {
        println!("left: {}", left.display());
    }
    again(scenario, folders)
}

/// An error's message and those of its sources, in one line.
fn with_sources(error: &dyn std::error::Error) -> String {
    let messages: Vec<_> =
        std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect();
    messages.join(": ").replace('\n', " | ")
}

fn check(scenario: &Scenario, folders: &Folders) -> Result {
    outputs::check(scenario, folders, false).map_err(|error| format!("after the end: {error}"))?;
    again(scenario, folders)
}

/// Everything works without a fault, whatever has happened before.
fn again(scenario: &Scenario, folders: &Folders) -> Result {
    (scenario.run)(folders).map_err(|error| format!("without a fault after one: {error}"))?;
    outputs::check(scenario, folders, true).map_err(|error| format!("without a fault after one: {error}").into())
}

/// Tells the supervisor that calls count from now on (1), or no longer (0). Alone, it does nothing.
fn mark(begin: libc::c_ulong) {
    const MARK: libc::c_int = 0x7456_4d46;
    // SAFETY: no option of the system has this number, so the call changes nothing.
    unsafe { libc::prctl(MARK, begin, 0, 0, 0) };
}
