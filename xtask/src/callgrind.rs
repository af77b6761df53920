//! The instructions of one call, counted with callgrind.

use std::fs;

use crate::command::{Cmd, Tests, cmd};
use crate::run::Failure;

/// The numbers of calls in the two runs; their difference gives the cost of one call. The second is large because the
/// instructions of a program that compiles vary from run to run.
const CALLS: [u64; 2] = [1000, 101_000];

/// Counts the instructions of one call of a function in a driver: `driver WHICH CALLS` makes that many calls.
/// `environment` adds settings that the program needs.
pub fn per_call(driver: &str, which: &str, environment: impl Fn(Cmd) -> Cmd) -> Result<f64, Failure> {
    let count = |calls: u64| {
        let log = format!("{driver}.log");
        let (to_log, calls) = (format!("--log-file={log}"), calls.to_string());
        let words = ["--tool=callgrind", "--callgrind-out-file=/dev/null", &to_log, driver, which, &calls];
        environment(cmd("valgrind", &words)).run()?;
        let text = fs::read_to_string(&log).unwrap_or_default();
        let number = text.lines().find_map(|line| line.split("Collected :").nth(1)?.trim().parse::<u64>().ok());
        number.ok_or_else(|| Failure { what: format!("callgrind counted nothing:\n{text}"), tests: Tests::default() })
    };
    let [few, many] = CALLS;
    Ok((count(many)? - count(few)?) as f64 / (many - few) as f64)
}
