//! Checks the page on debugging: the example prints the page's output, and `gdb` shows the example's own source.

use crate::command::{Output, Tests, cargo, cmd, root, without_stacks};
use crate::run::Failure;

const EXAMPLE: &str = "debugging";

/// The page that shows the example's output.
const PAGE: &str = "docs/howto/debugging.md";

/// The function where `gdb` stops, and parts of the backtrace's lines in order, possibly with other lines between them.
/// `gdb` prints the path of a Rust function with full debug information, and its symbol with line tables alone.
const STOP: &str = "debugging_halve";
const FRAMES: &[&str] =
    &["debugging_halve (", "in average () at model.dsl:3", "in __tvm_ffi_average ()", "in debugging::main", "in main "];

/// Runs the example, and then runs it under `gdb`.
pub fn check() -> Result<Tests, Failure> {
    let Output { stdout, tests } = without_stacks(cargo(&["run", "--example", EXAMPLE])).run()?;
    let failure = |what: String| Failure { what, tests };
    let page = std::fs::read_to_string(root().join(PAGE)).map_err(|e| failure(format!("{PAGE}: {e}")))?;
    if stdout.is_empty() || !page.contains(stdout.trim_end()) {
        return Err(failure(format!("{PAGE} lacks the output of the example `{EXAMPLE}`:\n{stdout}")));
    }
    let program = root().join("target/debug/examples").join(EXAMPLE);
    let stop = format!("break {STOP}");
    let program = program.to_string_lossy();
    let words = [
        "-batch",
        "-nx",
        "-iex",
        "set debuginfod enabled off",
        "-ex",
        &stop,
        "-ex",
        "run",
        "-ex",
        "backtrace",
        &program,
    ];
    let text = cmd("gdb", &words).read()?;
    let mut lines = text.lines();
    match FRAMES.iter().find(|frame| !lines.any(|line| line.contains(**frame))) {
        None => Ok(tests),
        Some(missing) => {
            Err(failure(format!("gdb's backtrace lacks `{missing}` behind the frames before it:\n{text}")))
        }
    }
}
