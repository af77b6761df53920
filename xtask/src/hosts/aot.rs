//! The example `aot`: a library, and programs in three languages that load it.

use super::*;
use crate::tools::{NUMPY, TYPING_EXTENSIONS};

/// The page of the book that shows the output.
const PAGE: &str = "docs/howto/libraries.md";

/// Runs all of them. Each program must print the output in [`PAGE`].
pub fn aot() -> Result<Tests> {
    let folder = folder("aot")?;
    let library = text(&folder.join("saxpy.so"));
    cargo(&["run", "--quiet", "--example", "aot-emit", "--", &library]).run()?;

    let python_path = [&UPSTREAM, &NUMPY, &TYPING_EXTENSIONS].map(|tool| text(&python_package(tool))).join(":");
    let python = cmd("python3", &["examples/aot/run.py", &library]).env("PYTHONPATH", &python_path);

    let (object, program) = (folder.join("run.o"), folder.join("run"));
    compile("cc", &[], "examples/aot/run.c", &object)?;
    let runtime = library_in(&upstream().join("lib"), "tvm_ffi");
    link_program("cc", &[text(&object)], &runtime.each_ref().map(String::as_str), &program)?;
    let c = cmd(&text(&program), &[&library]);

    let rust = cargo(&["run", "--quiet", "--example", "aot-run", "--", &library]);

    let page = fs::read_to_string(root().join(PAGE)).map_err(|e| failure(format!("{PAGE}: {e}")))?;
    let mut tests = Tests::default();
    for (what, program) in [("run.py", python), ("run.c", c), ("run.rs", rust)] {
        let printed = program.run().map_err(|Failure { what, .. }| Failure { what, tests })?.stdout;
        if printed.is_empty() || !page.contains(&printed) {
            tests.failed += 1;
            return Err(Failure { what: format!("{PAGE} shows another output of {what} than it has"), tests });
        }
        tests.passed += 1;
    }
    Ok(tests)
}
