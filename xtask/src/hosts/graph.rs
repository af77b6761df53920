//! The examples `graph_compiler` and `graph_compiler_py`: a model that calls the host. It runs in the compiler's
//! process and in Python.

use super::*;

/// The page that shows the programs' output.
const PAGE: &str = "docs/guide.md";

/// Runs the model in the example's process with both backends, and runs each backend's library in Python. The compiler
/// in Python makes libraries with the same behaviour. `kind` is a library with the kind of module that the model
/// imports.
pub fn graph(tests: &mut Tests, kind: &str, python_path: &str) -> Result {
    let folder = folder("graph")?;
    shown(tests, "graph_compiler", with_llvm::example("graph_compiler", &[]))?;
    with_llvm::example("graph_compiler", &[&text(&folder)]).run()?;
    let (prices, in_python) = (text(&folder.join("prices.o")), self::folder("graph_in_python")?);
    let compiler = ["examples/graph_compiler_py/main.py", &text(&in_python), &prices];
    let site = format!("{}:{python_path}", text(&crate::python::site()?));
    cmd("python3", &compiler).env("PYTHONPATH", &site).env("PYTHONDONTWRITEBYTECODE", "1").run()?;
    for (folder, compiler) in [(folder, "graph_compiler"), (in_python, "graph_compiler_py")] {
        for backend in BACKENDS {
            let [model, alone] = ["model", "alone"].map(|name| text(&folder.join(format!("{name}_{backend}.so"))));
            let python = cmd("python3", &["examples/graph_compiler/run.py", &model, &alone, kind]);
            shown(tests, &format!("run.py, {compiler}, {backend}"), python.env("PYTHONPATH", python_path))?;
        }
    }
    Ok(())
}

/// Runs a program. Its output must be on the page.
pub fn shown(tests: &mut Tests, what: &str, program: Cmd) -> Result {
    let page = fs::read_to_string(root().join(PAGE)).map_err(|e| failure(format!("{PAGE}: {e}")))?;
    let printed = program.run().map_err(|Failure { what, .. }| Failure { what, tests: *tests })?.stdout;
    if printed.is_empty() || !page.contains(&printed) {
        tests.failed += 1;
        let what = format!("{PAGE} shows another output of {what} than this:\n{printed}");
        return Err(Failure { what, tests: *tests });
    }
    tests.passed += 1;
    Ok(())
}
