//! The example compilers `dsl-cranelift` and `dsl-llvm`: their kernels run in their own processes, and in Python.

use super::graph::{quoted, shown};
use super::*;

/// The files with the output of the examples, and of the program that loads their libraries.
const OUTPUT: &str = "examples/dsl/output.txt";
const RUN_OUTPUT: &str = "examples/dsl/run-output.txt";

/// The page that shows a part of `OUTPUT`.
const PAGE: &str = "docs/howto/own-module.md";

/// Runs the kernels of each compiler in the compiler's process, and loads the library that it writes in Python. `kind`
/// is a library with an allocator.
pub fn compilers(tests: &mut Tests, kind: &str, python_path: &str) -> Result {
    let folder = folder("dsl")?;
    quoted(tests, PAGE, OUTPUT)?;
    for backend in BACKENDS {
        let name = format!("dsl-{backend}");
        shown(tests, OUTPUT, &name, with_llvm::example(&name, &[])?)?;
        let library = text(&folder.join(format!("{name}.so")));
        with_llvm::example(&name, &[&library])?.run()?;
        let python = cmd("python3", &["examples/dsl/run.py", &library, kind]);
        shown(tests, RUN_OUTPUT, &format!("run.py, {name}"), python.env("PYTHONPATH", python_path))?;
    }
    Ok(())
}
