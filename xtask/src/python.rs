//! The package for Python: built as a wheel, unpacked, and tested as its users have it.

use std::fs;
use std::path::Path;

use crate::command::{Cmd, Tests, cmd, root, without_stacks};
use crate::run::Failure;
use crate::tools::{CFFI, LLVMLITE, MATURIN, NUMPY, PYTEST, TRITON, TYPING_EXTENSIONS, Tool, UPSTREAM, python_package};

/// What the tests import, beside the package.
const PACKAGES: [&Tool; 6] = [&UPSTREAM, &TYPING_EXTENSIONS, &NUMPY, &LLVMLITE, &TRITON, &PYTEST];

/// Builds the wheel of a debug build, and runs the package's tests on it.
pub fn python() -> Result<Tests, Failure> {
    let folder = root().join("target/python");
    let (wheels, site) = (folder.join("wheels"), folder.join("site"));
    // a wheel of another version, or a module that was removed, is none of this build's
    let _ = fs::remove_dir_all(&folder);
    let maturin = python_package(&MATURIN).join("bin/maturin");
    let build = ["build", "--profile", "dev", "--out", &text(&wheels)].map(str::to_owned);
    cmd(&text(&maturin), &build.each_ref().map(String::as_str))
        .within("python")
        .runs_cargo()
        .env("PYTHONPATH", &text(&python_package(&CFFI)))
        .run()?;
    let wheel = fs::read_dir(&wheels).ok().and_then(|mut wheels| wheels.next()?.ok());
    let wheel = wheel.ok_or_else(|| failure("maturin has made no wheel"))?.path();
    let install = ["-m", "pip", "install", "--quiet", "--no-deps", "--target", &text(&site), &text(&wheel)];
    cmd("python3", &install).run()?;
    Ok(pytest(&site).run()?.tests)
}

/// The tests of the package that is in a folder.
fn pytest(site: &Path) -> Cmd {
    let path = PACKAGES.map(python_package).map(|path| text(&path));
    let path = [&[text(site)][..], &path].concat().join(":");
    without_stacks(cmd("python3", &["-m", "pytest", "-q", "-p", "no:cacheprovider", "python/tests"]))
        .env("PYTHONPATH", &path)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // else in the home of the user
        .env("TRITON_CACHE_DIR", &text(&root().join("target/python/triton")))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn failure(what: &str) -> Failure {
    Failure { what: what.to_owned(), tests: Tests::default() }
}
