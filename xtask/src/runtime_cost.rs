//! The cost of the runtime's C functions compared with upstream's: one driver in C, run with each library in turn.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{Cmd, Tests, cargo, cmd, root, target_folder, without_stacks};
use crate::run::Failure;
use crate::tools::{UPSTREAM, python_package};

/// The number of processes per library. Other programs also use the machine, so the fastest batch of all rounds counts.
const ROUNDS: usize = 15;
/// Batches of each operation in one process.
const BATCHES: &str = "20";
/// The number of libraries that are loaded for the first time in one process.
const COPIES: usize = 30;

/// The table of all operations. Asserts nothing about times.
pub fn table() -> Result<Tests, Failure> {
    let programs = Programs::build()?;
    let (mut upstream, mut ours, mut rust) = (Times::default(), Times::default(), Times::default());
    for _ in 0..ROUNDS {
        upstream.add(&programs.driver(&programs.upstream, BATCHES).read()?)?;
        ours.add(&programs.driver(&programs.ours, BATCHES).read()?)?;
        rust.add(&cmd(&text(&programs.rust), &["100"]).read()?)?;
    }
    println!("\nnanoseconds, the least of {ROUNDS} runs of each\n");
    println!("| operation | upstream | ours | ratio |\n| --- | ---: | ---: | ---: |");
    let (mut above, mut logarithms) = (Vec::new(), Vec::new());
    for name in &upstream.order {
        let (Some(theirs), Some(own)) = (upstream.of(name), ours.of(name)) else {
            return Err(failure(format!("`{name}` was not measured with both libraries")));
        };
        let ratio = own / theirs;
        logarithms.push(ratio.ln());
        println!("| {name} | {theirs:.1} | {own:.1} | {ratio:.2} |");
        // As the table shows it.
        if ratio >= 1.005 {
            above.push(format!("{name} ({ratio:.2})"));
        }
    }
    let mean = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
    println!("\n{} operations, geometric mean {mean:.2}", logarithms.len());
    println!("above 1.00: {}", if above.is_empty() { "none".to_owned() } else { above.join(", ") });
    println!("\n| from Rust, on ours | ns |\n| --- | ---: |");
    for name in &rust.order {
        println!("| {name} | {:.1} |", rust.of(name).unwrap_or(f64::NAN));
    }
    Ok(Tests::default())
}

/// Runs each operation a few times on both libraries, and checks that none fails.
pub fn smoke() -> Result<Tests, Failure> {
    let programs = Programs::build()?;
    let mut times = [Times::default(), Times::default()];
    for (library, times) in [&programs.upstream, &programs.ours].into_iter().zip(&mut times) {
        times.add(&programs.driver(library, "0").read()?)?;
    }
    if times[0].order != times[1].order || times[0].order.is_empty() {
        return Err(failure("the libraries ran different operations".to_owned()));
    }
    cmd(&text(&programs.rust), &["1"]).read()?;
    Ok(Tests { passed: times[0].order.len() as u64, ..Tests::default() })
}

/// The programs and libraries of the benchmark.
struct Programs {
    folder: PathBuf,
    upstream: PathBuf,
    ours: PathBuf,
    rust: PathBuf,
}

impl Programs {
    fn build() -> Result<Self, Failure> {
        cargo(&["build", "--release", "--package", "tvm-ffi-runtime-c"]).run()?;
        cargo(&["build", "--release", "--package", "tvm-ffi-runtime", "--example", "call_cost"]).run()?;
        let folder = root().join("target/runtime-cost");
        let upstream = python_package(&UPSTREAM).join("tvm_ffi");
        fs::create_dir_all(&folder).map_err(|e| failure(format!("{}: {e}", folder.display())))?;
        let include = text(&upstream.join("include"));
        let compile = |options: &[&str], source: &str, output: &str| {
            let output = text(&folder.join(output));
            let words = [&["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-isystem", &include], options];
            cmd("cc", &[&words.concat()[..], &[source, "-o", &output]].concat()).run()
        };
        compile(&[], "benches/runtime/driver.c", "driver")?;
        compile(&["-shared", "-fPIC"], "benches/runtime/library.c", "library.so")?;
        let copies = (0..COPIES).map(|i| format!("{i}.so"));
        for copy in copies.chain(["used.so".to_owned()]) {
            let copied = fs::copy(folder.join("library.so"), folder.join(&copy));
            copied.map_err(|e| failure(format!("{copy}: {e}")))?;
        }
        let release = target_folder().join("release");
        Ok(Self {
            upstream: upstream.join("lib/libtvm_ffi.so"),
            ours: release.join("libtvm_ffi_runtime.so"),
            rust: release.join("examples/call_cost"),
            folder,
        })
    }

    /// The driver with one library, in a separate process. Errors are measured without stacks, which both runtimes omit
    /// if they may.
    fn driver(&self, library: &Path, batches: &str) -> Cmd {
        let folder = text(&self.folder);
        let words = [&text(library), &folder, &COPIES.to_string(), batches];
        without_stacks(cmd(&text(&self.folder.join("driver")), &words)).env("RUST_BACKTRACE", "0")
    }
}

/// The minimum times of operations, in the order of the first run.
#[derive(Default)]
struct Times {
    order: Vec<String>,
    min: BTreeMap<String, f64>,
}

impl Times {
    /// Adds lines with a name, a tab, and nanoseconds.
    fn add(&mut self, lines: &str) -> Result<(), Failure> {
        for line in lines.lines() {
            let parsed = line.split_once('\t').and_then(|(name, time)| Some((name, time.parse::<f64>().ok()?)));
            let (name, time) = parsed.ok_or_else(|| failure(format!("no time of an operation: `{line}`")))?;
            match self.min.get_mut(name) {
                Some(min) => *min = min.min(time),
                None => {
                    self.order.push(name.to_owned());
                    self.min.insert(name.to_owned(), time);
                }
            }
        }
        Ok(())
    }

    fn of(&self, name: &str) -> Option<f64> {
        self.min.get(name).copied()
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn failure(what: String) -> Failure {
    Failure { what, tests: Tests::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_time_of_each_operation_counts() {
        let mut times = Times::default();
        assert!(times.add("b\t2.5\na\t1\n").is_ok() && times.add("b\t2\na\t3\n").is_ok());
        assert_eq!(times.order, ["b", "a"]);
        assert_eq!((times.of("a"), times.of("b"), times.of("c")), (Some(1.0), Some(2.0), None));
        assert!(times.add("no time").is_err());
    }
}
