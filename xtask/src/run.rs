//! Runs a table of steps, and prints headers, times, the first failure, and the summary.

use std::collections::HashSet;
use std::fmt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::beside::Beside;
use crate::command::{Tests, in_ci, time_of_children};
use crate::tools::{self, Tool};

/// One step of a task.
pub struct Step {
    /// The step's name for `--only`.
    pub name: &'static str,
    /// A description of the checks.
    pub about: &'static str,
    /// The tools that the step needs. Without them it is skipped, or fails in CI.
    pub needs: &'static [Tool],
    /// The step itself. It returns the tests that it counted, or the failure.
    pub run: fn() -> Result<Tests, Failure>,
}

/// A failed step.
pub struct Failure {
    /// The command or check that failed.
    pub what: String,
    /// The tests counted before the failure.
    pub tests: Tests,
}

/// The time of a step.
struct Time {
    wall: Duration,
    /// The CPU time of the step's processes, where the system tells it.
    cpu: Option<Duration>,
}

impl Time {
    /// Runs something, and takes its time.
    fn of<T>(run: impl FnOnce() -> T) -> (T, Self) {
        let (start, before) = (Instant::now(), time_of_children());
        let value = run();
        let cpu = time_of_children().zip(before).map(|(after, before)| after.saturating_sub(before));
        (value, Time { wall: start.elapsed(), cpu })
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} s", self.wall.as_secs_f64())?;
        self.cpu.map_or(Ok(()), |cpu| write!(f, ", {:.1} s of CPU time", cpu.as_secs_f64()))
    }
}

enum Outcome {
    Passed(Tests),
    Skipped(String),
    Failed(Failure),
}

/// Prints the table.
pub fn list(steps: &[Step]) -> ExitCode {
    for step in steps {
        println!("{:<14} {}", step.name, step.about);
    }
    ExitCode::SUCCESS
}

/// Runs the steps in `only`, or all, those in `beside` beside the others. The last line counts tests: `N passed, N
/// failed`, then `, N skipped` for ignored tests and skipped steps, if any.
pub fn run(task: &'static str, steps: &'static [Step], beside: &'static [&str], only: &[String]) -> ExitCode {
    for name in only {
        if !steps.iter().any(|step| step.name == name) {
            let names: Vec<_> = steps.iter().map(|step| step.name).collect();
            eprintln!("there is no step `{name}` in `{task}`; the steps are {}", names.join(", "));
            return ExitCode::FAILURE;
        }
    }
    let mut tests = Tests::default();
    let mut summary = Vec::new();
    let mut failed = None;
    let (second, first): (Vec<&Step>, Vec<&Step>) = match only {
        [] => steps.iter().partition(|step| beside.contains(&step.name)),
        only => (vec![], steps.iter().filter(|step| only.iter().any(|name| name == step.name)).collect()),
    };
    let second = (!second.is_empty()).then(|| Beside::start(task, &second));
    if only.is_empty() {
        tools::ensure_ahead(first.iter().flat_map(|step| step.needs).collect());
    }
    for step in first {
        println!("\n=== {}: {} ===", step.name, step.about);
        let (outcome, time) = Time::of(|| execute(step));
        let result = match outcome {
            Outcome::Passed(counted) => {
                tests.add(counted);
                "ok".to_owned()
            }
            Outcome::Skipped(reason) => {
                tests.skipped += 1;
                println!("skipped {}: {reason}", step.name);
                format!("SKIPPED: {reason}")
            }
            Outcome::Failed(failure) => {
                tests.add(failure.tests);
                tests.failed = tests.failed.max(1);
                // at once: the steps beside may go on for minutes
                println!("FAILED: {}", failure.what);
                failed = Some((step.name.to_owned(), failure.what));
                "FAILED".to_owned()
            }
        };
        println!("--- {} took {time} ---", step.name);
        if only.is_empty() && in_ci() {
            discard_unneeded(steps, step);
        }
        summary.push((step.name.to_owned(), time, result));
        if failed.is_some() {
            break;
        }
    }
    if let Some((names, wall, outcome)) = second.map(Beside::end) {
        let result = match outcome {
            Ok(counted) => {
                tests.add(counted);
                "ok"
            }
            Err(failure) => {
                tests.add(failure.tests);
                tests.failed = tests.failed.max(1);
                failed.get_or_insert((names.clone(), failure.what));
                "FAILED"
            }
        };
        // its own summary has the CPU time of its steps
        summary.push((names, Time { wall, cpu: None }, result.to_owned()));
    }
    println!("\n=== summary ===");
    for (name, time, result) in &summary {
        println!("{name:<14} {result:<6} {time}");
    }
    if let Some((name, what)) = &failed {
        let only = name.replace(", ", " --only ");
        println!("\nstep `{name}` failed: {what}\nrun it alone: cargo xtask {task} --only {only}");
    }
    println!("\n{tests}");
    if failed.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Deletes what the target directory holds for the tools that no later step needs. A whole run fills 20 GB otherwise.
fn discard_unneeded(steps: &[Step], done: &Step) {
    let later = steps.iter().skip_while(|step| step.name != done.name).skip(1);
    let needed: HashSet<&str> = later.flat_map(|step| step.needs).map(|tool| tool.name).collect();
    done.needs.iter().filter(|tool| !needed.contains(tool.name)).for_each(tools::discard);
}

fn execute(step: &Step) -> Outcome {
    for tool in step.needs {
        if let Err(reason) = tools::ensure(tool) {
            // CI skips nothing
            return match in_ci() {
                true => Outcome::Failed(Failure { what: reason, tests: Tests::default() }),
                false => Outcome::Skipped(reason),
            };
        }
    }
    match (step.run)() {
        Ok(tests) => Outcome::Passed(tests),
        Err(failure) => Outcome::Failed(failure),
    }
}
