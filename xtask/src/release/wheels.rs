//! Checks of the wheels: their contents, whether an index takes them, and their tests as users install them.

use std::fs;

use super::{failed, folder, text};
use crate::command::{Cmd, Tests, cmd, target_folder, without_stacks};
use crate::run::Failure;
use crate::tools::{AUDITWHEEL, TWINE, python_package};

/// The versions of Python that the wheels are for.
const PYTHONS: std::ops::RangeInclusive<u32> = 9..=14;
/// The wheel, and what its tests need.
pub const PACKAGES: [&str; 3] = ["tvm-ffi-codegen", "numpy", "pytest"];
/// Tests of the package that need other packages than NumPy and pytest. The steps of `cargo xtask test` run them.
const WITH_OTHERS: [&str; 5] = ["test_torch.py", "test_jax.py", "test_llvm.py", "test_example.py", "compilers"];

/// Prints the files with their sizes, and checks each.
pub fn check() -> Result<Tests, Failure> {
    let mut files: Vec<_> = fs::read_dir(folder())
        .map_err(|e| failed(format!("{}: {e}", folder().display())))?
        .filter_map(|entry| Some(text(&entry.ok()?.path())))
        .collect();
    files.sort();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let packages = [&TWINE, &AUDITWHEEL].map(|tool| text(&python_package(tool))).join(":");
    let with_tools = |words: &[&str]| cmd("python3", words).env("PYTHONPATH", &packages);
    with_tools(&[&["xtask/src/release/contents.py"], &files[..]].concat()).run()?;
    let (uploaded, _): (Vec<&str>, Vec<&str>) = files.iter().partition(|file| !file.contains("/tvm-ffi-codegen-"));
    with_tools(&[&["-m", "twine", "check", "--strict"], &uploaded[..]].concat()).run()?;
    Ok(Tests { passed: files.len() as u64, ..Tests::default() })
}

/// Installs the wheel in a new environment of each version of Python that the machine has, and runs the package's
/// tests.
pub fn pythons() -> Result<Tests, Failure> {
    let mut tests = Tests::default();
    for version in PYTHONS.map(|minor| format!("3.{minor}")) {
        // pyenv chooses its interpreter by this variable
        let python = |words: &[&str]| cmd(&format!("python{version}"), words).env("PYENV_VERSION", &version);
        if !python(&["--version"]).quiet() {
            println!("left out: this machine has no Python {version}");
            tests.skipped += 1;
            continue;
        }
        let environment = target_folder().join("release-pythons").join(&version);
        python(&["-m", "venv", "--clear", &text(&environment)]).run()?;
        let python = text(&environment.join("bin/python"));
        let install = [&["-m", "pip", "install", "--quiet", "--only-binary", ":all:"], &PACKAGES[..]].concat();
        cmd(&python, &install).env("PIP_FIND_LINKS", &text(&folder())).run()?;
        tests.add(self::tests(&python, |command| command)?);
    }
    Ok(tests)
}

/// Runs the package's tests on a Python that has the wheel. First comes `python/tests/smoke.py`, which imports every
/// module, compiles, links, loads and calls.
pub fn tests(python: &str, within: impl Fn(Cmd) -> Cmd) -> Result<Tests, Failure> {
    let run = |words: &[&str]| within(without_stacks(cmd(python, words)).env("PYTHONDONTWRITEBYTECODE", "1")).run();
    run(&["python/tests/smoke.py"])?;
    let ignored = WITH_OTHERS.map(|file| format!("--ignore=python/tests/{file}"));
    let words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "python/tests"];
    let mut tests = run(&[&words[..], &ignored.each_ref().map(String::as_str)].concat())?.tests;
    tests.passed += 1;
    Ok(tests)
}
