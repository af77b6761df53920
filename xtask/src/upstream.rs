//! Comparison with upstream's PyPI package.

use std::fs;

use crate::command::{Tests, cmd, root};
use crate::difference::first_difference;
use crate::run::Failure;
use crate::tools::{UPSTREAM, python_package};

const PROGRAM: &str = "tests/upstream/converters.cc";
const TABLE: &str = "fixtures/upstream/converters.table";
const BLESS: &str = "TVM_FFI_CODEGEN_BLESS";

/// Runs upstream's converters, and compares their results with the committed table.
pub fn converters() -> Result<Tests, Failure> {
    let package = python_package(&UPSTREAM).join("tvm_ffi");
    let (include, lib) = (package.join("include"), package.join("lib"));
    let (include, lib) = (include.to_string_lossy(), lib.to_string_lossy());
    let executable = root().join("target/upstream-converters");
    let executable = executable.to_string_lossy();
    let rpath = format!("-Wl,-rpath,{lib}");
    let warnings = ["-std=c++17", "-Wall", "-Wextra", "-Werror"];
    let files = ["-isystem", &*include, PROGRAM, "-o", &*executable, "-L", &*lib, "-ltvm_ffi", &*rpath];
    cmd("g++", &[&warnings[..], &files].concat()).run()?;
    let now = cmd(&executable, &[UPSTREAM.name]).read()?;

    let failure = |what: String| Failure { what, tests: Tests::default() };
    let path = root().join(TABLE);
    let table = fs::read_to_string(&path).unwrap_or_default();
    let Some((line, was, is)) = first_difference(&table, &now) else { return Ok(Tests::default()) };
    if std::env::var_os(BLESS).is_some_and(|value| value == "1") {
        fs::write(&path, now).map_err(|e| failure(format!("{TABLE}: {e}")))?;
        println!("wrote {TABLE}");
        return Ok(Tests::default());
    }
    Err(failure(format!(
        "{TABLE}:{line}: there is `{was}`, and upstream's converters print `{is}`; with {BLESS}=1 this step writes the \
         table"
    )))
}
