//! Commands: prints them, runs them in the repository's root, and reads their test counts.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{BufRead, BufReader, Write};
#[cfg(target_os = "linux")]
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use crate::run::Failure;
use crate::watchdog::{self, Watchdog};

/// The sum of the test results.
#[derive(Clone, Copy, Default)]
pub struct Tests {
    pub passed: u64,
    pub failed: u64,
    /// Ignored tests; in a summary also the steps that were skipped.
    pub skipped: u64,
}

impl Tests {
    /// Adds another count.
    pub fn add(&mut self, other: Tests) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// Counts `test result: ok. 3 passed; 0 failed; 1 ignored; ...` of Rust, and `1 failed, 3 passed, 1 skipped in
    /// 0.12s` of pytest.
    fn read(&mut self, line: &str) {
        if let Some(counts) = line.trim_start().strip_prefix("test result: ") {
            // the verdict ends with the first `. `
            let counts = counts.split_once(". ").map_or(counts, |(_, counts)| counts);
            self.read_counts(counts.split(';'));
        } else if let Some((counts, time)) = line.trim().rsplit_once(" in ")
            && time.trim_end_matches(|c| c != 's').trim_end_matches('s').parse::<f64>().is_ok()
        {
            self.read_counts(counts.split(','));
        }
    }

    /// Reads the last line of a run: `3 passed, 0 failed, 1 skipped`.
    pub fn of_summary(line: &str) -> Self {
        let mut tests = Self::default();
        tests.read_counts(line.split(','));
        tests
    }

    fn read_counts<'a>(&mut self, counts: impl Iterator<Item = &'a str>) {
        for count in counts {
            match count.trim().split_once(' ').map(|(n, what)| (n.parse::<u64>(), what)) {
                Some((Ok(n), "passed")) => self.passed += n,
                Some((Ok(n), "failed" | "error" | "errors")) => self.failed += n,
                Some((Ok(n), "ignored" | "skipped" | "deselected" | "xfailed")) => self.skipped += n,
                _ => {}
            }
        }
    }
}

impl fmt::Display for Tests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        match self.skipped {
            0 => Ok(()),
            n => write!(f, ", {n} skipped"),
        }
    }
}

/// The repository's root.
pub fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// The directory of cargo's outputs.
pub fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |path| root().join(path))
}

/// The path of a program of a debug build, given its name under that build's directory.
pub fn debug_program(name: &str) -> PathBuf {
    target_folder().join(format!("debug/{name}{}", std::env::consts::EXE_SUFFIX))
}

/// The output of a command.
pub struct Output {
    pub stdout: String,
    pub tests: Tests,
}

/// The resources that a command used.
pub struct Usage {
    pub time: Duration,
    /// The peak resident memory in KiB of its process, or of a larger process that it waited for.
    pub peak_kib: u64,
}

/// The CPU time of this process's children that have ended; `None` where the system doesn't tell it.
pub fn time_of_children() -> Option<Duration> {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: all fields are integers, and 0 is a valid value of each.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a live variable of the right type.
        let known = unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage) } == 0;
        let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, 1000 * t.tv_usec as u32);
        known.then(|| time(usage.ru_utime) + time(usage.ru_stime))
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// A command that prints errors without stacks, whatever `RUST_BACKTRACE` says. In tests of errors, looking up function
/// names takes longer than everything else.
pub fn without_stacks(command: Cmd) -> Cmd {
    command.env("TVM_FFI_BACKTRACE", "0")
}

/// A command whose tests with random cases run only a few. `cargo xtask soak` runs many, in release.
pub fn few_random_cases(command: Cmd) -> Cmd {
    command.env("PROPTEST_CASES", "20").env(GRAPHS, "4")
}

/// The environment variable with the number of random call graphs.
pub const GRAPHS: &str = "TVM_FFI_CODEGEN_GRAPHS";

/// Runs commands until one fails, and adds up their tests.
pub fn all(commands: impl IntoIterator<Item = Cmd>) -> Result<Tests, Failure> {
    let mut tests = Tests::default();
    for command in commands {
        match command.run() {
            Ok(output) => tests.add(output.tests),
            Err(mut failure) => {
                failure.tests.add(tests);
                return Err(failure);
            }
        }
    }
    Ok(tests)
}

/// Runs commands in parallel and adds up their tests. Their outputs must be separate. Returns the first failure in
/// their order.
pub fn all_at_once(commands: impl IntoIterator<Item = Cmd>) -> Result<Tests, Failure> {
    let outcomes: Vec<Result<Output, Failure>> = std::thread::scope(|scope| {
        let runs: Vec<_> = commands.into_iter().map(|command| scope.spawn(|| command.run())).collect();
        let stopped = |_| Failure { what: "a command's thread panicked".to_owned(), tests: Tests::default() };
        runs.into_iter().map(|run| run.join().unwrap_or_else(|e| Err(stopped(e)))).collect()
    });
    let mut tests = Tests::default();
    let mut first_failure = None;
    for outcome in outcomes {
        match outcome {
            Ok(output) => tests.add(output.tests),
            Err(failure) => {
                tests.add(failure.tests);
                first_failure.get_or_insert(failure.what);
            }
        }
    }
    first_failure.map_or(Ok(tests), |what| Err(Failure { what, tests }))
}

/// A command under construction.
pub struct Cmd(Command);

/// The `cargo` that runs this program. In CI, which builds each crate once, it keeps no incremental state, and emits
/// only the debug information that stacks need.
pub fn cargo(args: &[&str]) -> Cmd {
    cmd(std::env::var("CARGO").as_deref().unwrap_or("cargo"), args).runs_cargo()
}

/// True if this is a CI run, which must skip nothing.
pub fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// The variable that lists where the system looks for libraries.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// The value of [`LIBRARY_PATH`] without the directories of build outputs. Cargo adds these for the programs that it
/// runs, including this one. Our library has the same name as upstream's, and programs linked with upstream's would
/// load ours.
fn library_path() -> Option<&'static OsStr> {
    static PATH: LazyLock<Option<OsString>> = LazyLock::new(|| {
        let path = std::env::var_os(LIBRARY_PATH)?;
        let built = target_folder();
        std::env::join_paths(std::env::split_paths(&path).filter(|folder| !folder.starts_with(&built))).ok()
    });
    PATH.as_deref()
}

/// Any command.
pub fn cmd(program: &str, args: &[&str]) -> Cmd {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    if let Some(path) = library_path() {
        command.env(LIBRARY_PATH, path);
    }
    Cmd(command)
}

impl Cmd {
    /// Marks a command that runs cargo, directly or not, so the builds of all commands have the same settings.
    pub fn runs_cargo(self) -> Self {
        match in_ci() {
            true => self.env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only"),
            false => self,
        }
    }

    /// Runs it in a directory of the repository.
    pub fn within(mut self, folder: &str) -> Self {
        self.0.current_dir(root().join(folder));
        self
    }

    /// Appends arguments.
    pub fn args(mut self, args: &[&str]) -> Self {
        self.0.args(args);
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.0.env(name, value);
        self
    }

    /// The command as you would type it.
    fn text(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        for (name, value) in self.0.get_envs().filter(|&(name, value)| name != LIBRARY_PATH || value != library_path())
        {
            words.push(format!("{}={:?}", name.to_string_lossy(), value.unwrap_or_default().to_string_lossy()));
        }
        let program = Path::new(self.0.get_program());
        words.push(program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned());
        for arg in self.0.get_args() {
            let arg = arg.to_string_lossy();
            let plain = arg.chars().all(|c| c.is_ascii_alphanumeric() || "-_=./:+,".contains(c));
            words.push(if plain { arg.into_owned() } else { format!("'{arg}'") });
        }
        words.join(" ")
    }

    /// Runs it, streams its output, and counts tests.
    pub fn run(self) -> Result<Output, Failure> {
        self.finish(true)
    }

    /// Runs it, and returns its output. It shows the output only if the command fails.
    pub fn read(self) -> Result<String, Failure> {
        self.finish(false).map(|output| output.stdout)
    }

    fn finish(mut self, show: bool) -> Result<Output, Failure> {
        let text = self.text();
        println!("$ {text}");
        let failure = |what: String, tests| Failure { what, tests };
        if in_ci() {
            watchdog::prepare(&mut self.0);
        }
        let mut child = self
            .0
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| failure(format!("`{text}` did not start: {e}"), Tests::default()))?;
        let watchdog = in_ci().then(|| Watchdog::start(&child));
        let mut output = Output { stdout: String::new(), tests: Tests::default() };
        if let Some(stdout) = child.stdout.take() {
            let mut reader = BufReader::new(stdout);
            let mut line = Vec::new();
            while matches!(reader.read_until(b'\n', &mut line), Ok(n) if n > 0) {
                if show {
                    // if our stdout is closed, the child still has to finish
                    let _ = std::io::stdout().write_all(&line);
                }
                let text = String::from_utf8_lossy(&line);
                output.tests.read(&text);
                output.stdout.push_str(&text);
                line.clear();
            }
        }
        let status = child.wait();
        if !show && !status.as_ref().is_ok_and(|status| status.success()) {
            print!("{}", output.stdout);
        }
        if let Some(Err(stopped)) = watchdog.map(Watchdog::ended) {
            return Err(failure(format!("`{text}`: {stopped}"), output.tests));
        }
        match status {
            Ok(status) if status.success() => Ok(output),
            Ok(status) => Err(failure(format!("`{text}`: {status}"), output.tests)),
            Err(e) => Err(failure(format!("`{text}`: {e}"), output.tests)),
        }
    }

    /// Runs it, and returns the resources that it used.
    #[cfg(target_os = "linux")]
    pub fn measure(mut self) -> Result<Usage, Failure> {
        let text = self.text();
        println!("$ {text}");
        let failure = |what: String| Failure { what, tests: Tests::default() };
        let start = std::time::Instant::now();
        let child = self.0.spawn().map_err(|e| failure(format!("`{text}` did not start: {e}")))?;
        // SAFETY: all fields are integers, and 0 is a valid value of each.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let mut status = 0;
        // SAFETY: the child is this process's, and no other code waits for it. Both pointers are to live variables of
        // the right types.
        let waited = unsafe { libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage) };
        let time = start.elapsed();
        let status = std::process::ExitStatus::from_raw(status);
        match waited {
            -1 => Err(failure(format!("`{text}`: {}", std::io::Error::last_os_error()))),
            _ if status.success() => Ok(Usage { time, peak_kib: usage.ru_maxrss as u64 }),
            _ => Err(failure(format!("`{text}`: {status}"))),
        }
    }

    /// Only Linux counts in KiB and has this wait call.
    #[cfg(not(target_os = "linux"))]
    pub fn measure(self) -> Result<Usage, Failure> {
        Err(Failure { what: format!("`{}`: memory is measured on Linux alone", self.text()), tests: Tests::default() })
    }

    /// The command itself, for a caller that watches the process, as only Linux allows.
    #[cfg(target_os = "linux")]
    pub fn into_command(self) -> Command {
        self.0
    }

    /// Runs it without output, and returns whether it succeeded.
    pub fn quiet(mut self) -> bool {
        let status = self.0.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_results_add_up() {
        let mut tests = Tests::default();
        tests.read("running 3 tests");
        tests.read("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n");
        tests.read("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n");
        assert_eq!(tests.to_string(), "5 passed, 1 failed, 1 skipped");
        assert_eq!(Tests { passed: 2, failed: 0, skipped: 0 }.to_string(), "2 passed, 0 failed");
        assert_eq!(Tests::of_summary(&tests.to_string()).to_string(), tests.to_string());
    }
}
