//! Runs steps beside the others, in a second process whose output is printed when it has ended.

use std::fs::File;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fs, io};

use crate::command::{Tests, root, target_folder};
use crate::run::{Failure, Step};
use crate::tools;

/// Running steps.
pub struct Beside {
    names: String,
    thread: JoinHandle<io::Result<bool>>,
    start: Instant,
}

impl Beside {
    /// Installs the steps' tools, then starts the steps, on a thread. Two processes must not install at the same time.
    pub fn start(task: &'static str, steps: &[&'static Step]) -> Self {
        let steps = steps.to_vec();
        let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
        let names = names.join(", ");
        let thread = thread::spawn(move || {
            // The steps report a tool that is missing.
            steps.iter().flat_map(|step| step.needs).for_each(|tool| drop(tools::ensure(tool)));
            let only = steps.iter().flat_map(|step| ["--only", step.name]);
            let output = File::create(output())?;
            let mut command = Command::new(std::env::current_exe()?);
            command.arg(task).args(only).current_dir(root()).stdin(Stdio::null());
            Ok(command.stdout(output.try_clone()?).stderr(output).status()?.success())
        });
        Self { names, thread, start: Instant::now() }
    }

    /// Waits for the steps, and prints their output.
    pub fn end(self) -> (String, Duration, Result<Tests, Failure>) {
        let result = self.thread.join();
        let time = self.start.elapsed();
        let text = fs::read_to_string(output()).unwrap_or_default();
        println!("\n=== beside the others: {} ===\n{text}", self.names);
        let tests = text.lines().next_back().map_or_else(Tests::default, Tests::of_summary);
        let failed = |what: String| Err(Failure { what, tests });
        let result = match result {
            Ok(Ok(true)) => Ok(tests),
            Ok(Ok(false)) => failed("its output is above".to_owned()),
            Ok(Err(e)) => failed(e.to_string()),
            Err(_) => failed("its thread panicked".to_owned()),
        };
        (self.names, time, result)
    }
}

/// The file of the steps' output.
fn output() -> std::path::PathBuf {
    target_folder().join("beside.txt")
}
