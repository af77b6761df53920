//! The libraries of `fixtures/artifacts` under each version of upstream's package, `tests/hosts/versions.py`.

use super::*;
use crate::tools::{NUMPY, Source, TYPING_EXTENSIONS, Tool, ensure};

/// Runs every text on every version. Prints a table, and fails after a problem.
pub fn versions() -> Result<Tests> {
    let artifacts = root().join("fixtures/artifacts");
    let (mut rows, mut tests) = (Vec::new(), Tests::default());
    for version in released()? {
        for text in files(&artifacts, ".txt")? {
            let text = format!("fixtures/artifacts/{text}.txt");
            let row = match run(&version, &text) {
                Ok(row) => {
                    tests.passed += 1;
                    row
                }
                Err(failure) => {
                    tests.failed += 1;
                    println!("{version}: {}", failure.what);
                    "a problem, stated above".to_owned()
                }
            };
            rows.push(format!("{version:<14} {row}"));
        }
    }
    println!("\n{}", rows.join("\n"));
    match tests.failed {
        0 => Ok(tests),
        failed => Err(Failure { what: format!("{failed} versions of apache-tvm-ffi have problems"), tests }),
    }
}

/// The versions that pip offers to this Python, from the first one on.
fn released() -> Result<Vec<String>> {
    let printed = cmd("python3", &["-m", "pip", "index", "versions", "apache-tvm-ffi"]).read()?;
    let versions = printed.lines().find_map(|line| line.strip_prefix("Available versions: "));
    let versions = versions.ok_or_else(|| failure(format!("pip lists no versions of apache-tvm-ffi: {printed}")))?;
    Ok(versions.split(',').rev().map(|version| version.trim().to_owned()).collect())
}

/// Runs a text on a version. Returns what the version loads and which calls pass, or that it doesn't install.
fn run(version: &str, text: &str) -> Result<String> {
    // a tool's name lives as long as the process
    let name = String::leak(format!("apache-tvm-ffi=={version}"));
    let package = Tool { name, probe: &[], source: Source::PyPi };
    if let Err(why) = ensure(&package) {
        return Ok(format!("doesn't install: {why}"));
    }
    let path = [&package, &TYPING_EXTENSIONS, &NUMPY].map(|tool| super::text(&python_package(tool))).join(":");
    let script = without_stacks(cmd("python3", &["tests/hosts/versions.py", text]))
        .env("PYTHONPATH", &path)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let printed = script.run()?.stdout;
    let last = printed.lines().last().and_then(|line| line.split_once(": "));
    last.map(|(_, counts)| counts.to_owned()).ok_or_else(|| failure(format!("{version}: nothing was printed")))
}
