//! The example compilers `dsl-cranelift` and `dsl-llvm`: their kernels run in their own processes, and in Python.

use super::graph::shown;
use super::*;

/// Runs the kernels of each compiler in the compiler's process, and loads the library that it writes in Python. `kind`
/// is a library with an allocator.
pub fn compilers(tests: &mut Tests, kind: &str, python_path: &str) -> Result {
    let folder = folder("dsl")?;
    for backend in BACKENDS {
        let name = format!("dsl-{backend}");
        shown(tests, &name, with_llvm::example(&name, &[]))?;
        let library = text(&folder.join(format!("{name}.so")));
        with_llvm::example(&name, &[&library]).run()?;
        let python = cmd("python3", &["examples/dsl/run.py", &library, kind]);
        shown(tests, &format!("run.py, {name}"), python.env("PYTHONPATH", python_path))?;
    }
    Ok(())
}
