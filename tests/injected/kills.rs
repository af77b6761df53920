//! Processes that are killed at random moments while they write files.

use std::fs::{self, File};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::children::Child;
use crate::outputs;
use crate::scenarios::{SCENARIOS, Scenario};
use crate::{Folders, Result};

/// The scenarios that write files.
const WRITING: &[&str] = &["emit", "link-cc", "link-gold", "link-wild", "pack", "archive", "cache"];
/// The number of kills after which a directory is emptied, and gets its old files again.
const RESET: u64 = 10;

/// Kills `count` processes in all, and prints what they left.
pub fn run(folders: &Folders, count: u64) -> Result {
    let writing: Vec<&Scenario> = SCENARIOS.iter().filter(|scenario| WRITING.contains(&scenario.name)).collect();
    let own = std::env::current_exe()?;
    let folder = folders.out.parent().ok_or("a directory has a parent")?;
    let stderr = File::create(folder.join("stderr"))?;
    for scenario in &writing {
        // in processes of their own, as this one must stay without threads
        if !Command::new(&own).args(["setup", scenario.name]).arg(folder).status()?.success() {
            return Err(format!("the setup of {} fails", scenario.name).into());
        }
    }
    let mut seed = std::time::UNIX_EPOCH.elapsed()?.as_nanos() as u64 | 1;
    println!("seed {seed}");
    for scenario in &writing {
        let time = duration(scenario, folders, &stderr)?;
        let (mut old, mut new, mut left) = (0, 0, 0);
        for number in 0..count / writing.len() as u64 {
            if number.is_multiple_of(RESET) {
                left += begin(scenario, folders)?;
            }
            let child = Child::start(&stderr, || (scenario.run)(folders).map_or(1, |()| loop_on(scenario, folders)))?;
            // up to twice the time of the scenario: within its first or its second run
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            std::thread::sleep(time.mul_f64((seed % 2000) as f64 / 1000.0));
            child.kill();
            let status = child.wait()?;
            if status.code().is_some() {
                return Err(format!("{}: a run ended by itself: {status}", scenario.name).into());
            }
            outputs::check(scenario, folders, false)
                .map_err(|error| format!("{}, kill {number}: {error}", scenario.name))?;
            match outputs::check(scenario, folders, true) {
                Ok(()) => new += 1,
                Err(_) => old += 1,
            }
            // everything works afterwards
            if number.is_multiple_of(RESET) {
                let status = Child::start(&stderr, || u8::from((scenario.run)(folders).is_err()))?.wait()?;
                outputs::check(scenario, folders, status.success())?;
                if !status.success() {
                    return Err(format!("{}: a run after kill {number} fails: {status}", scenario.name).into());
                }
            }
        }
        left += begin(scenario, folders)?;
        println!(
            "{:<10} {:>6} kills, {:>6.1?} a run: {old} left old outputs, {new} new ones, {left} temporary files",
            scenario.name,
            old + new,
            time
        );
    }
    Ok(())
}

/// Runs the scenario until the process is killed.
fn loop_on(scenario: &Scenario, folders: &Folders) -> u8 {
    loop {
        if (scenario.run)(folders).is_err() {
            return 1;
        }
    }
}

/// The time of one run in a process of its own.
fn duration(scenario: &Scenario, folders: &Folders, stderr: &File) -> Result<Duration> {
    begin(scenario, folders)?;
    let start = Instant::now();
    let status = Child::start(stderr, || u8::from((scenario.run)(folders).is_err()))?.wait()?;
    match status.success() {
        true => Ok(start.elapsed()),
        false => Err(format!("{}: a run without a kill fails: {status}", scenario.name).into()),
    }
}

/// Empties the directory, and returns how many temporary files it had. A linker whose caller was killed may still be
/// writing there.
fn begin(scenario: &Scenario, folders: &Folders) -> Result<usize> {
    const TRIES: usize = 100;
    let left = if folders.out.exists() { outputs::unfinished(&folders.out).unwrap_or_default().len() } else { 0 };
    for _ in 0..TRIES {
        if fs::remove_dir_all(&folders.out).is_ok() || !folders.out.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    outputs::begin(scenario, folders)?;
    Ok(left)
}
