//! The examples `graph_compiler` and `graph_compiler_py`: a model that calls the host. It runs in the compiler's
//! process and in Python.

use super::*;

/// The files with the output of the example, and of the program that loads its libraries.
const OUTPUT: &str = "examples/graph_compiler/output.txt";
const RUN_OUTPUT: &str = "examples/graph_compiler/run-output.txt";

/// The page that shows a part of `OUTPUT`.
const PAGE: &str = "docs/howto/calling-out.md";

/// Runs the model in the example's process with both backends, and runs each backend's library in Python. The compiler
/// in Python makes libraries with the same behaviour. `kind` is a library with the kind of module that the model
/// imports.
pub fn graph(tests: &mut Tests, kind: &str, python_path: &str) -> Result {
    let folder = folder("graph")?;
    shown(tests, OUTPUT, "graph_compiler", with_llvm::example("graph_compiler", &[])?)?;
    quoted(tests, PAGE, OUTPUT)?;
    with_llvm::example("graph_compiler", &[&text(&folder)])?.run()?;
    let (prices, in_python) = (text(&folder.join("prices.o")), self::folder("graph_in_python")?);
    let compiler = ["examples/graph_compiler_py/main.py", &text(&in_python), &prices];
    let site = format!("{}:{python_path}", text(&crate::python::site()?));
    cmd("python3", &compiler).env("PYTHONPATH", &site).env("PYTHONDONTWRITEBYTECODE", "1").run()?;
    for (folder, compiler) in [(folder, "graph_compiler"), (in_python, "graph_compiler_py")] {
        for backend in BACKENDS {
            let [model, alone] = ["model", "alone"].map(|name| text(&folder.join(format!("{name}_{backend}.so"))));
            let python = cmd("python3", &["examples/graph_compiler/run.py", &model, &alone, kind]);
            let what = format!("run.py, {compiler}, {backend}");
            shown(tests, RUN_OUTPUT, &what, python.env("PYTHONPATH", python_path))?;
        }
    }
    Ok(())
}

/// Runs a program. A file must have its output.
pub fn shown(tests: &mut Tests, file: &str, what: &str, program: Cmd) -> Result {
    let expected = read(file)?;
    let printed = program.run().map_err(|Failure { what, .. }| Failure { what, tests: *tests })?.stdout;
    if printed.is_empty() || !expected.contains(&printed) {
        tests.failed += 1;
        let what = format!("{file} has another output of {what} than this:\n{printed}");
        return Err(Failure { what, tests: *tests });
    }
    tests.passed += 1;
    Ok(())
}

/// Checks that a page has blocks of text, and that each of them is a part of a file with a program's output.
pub fn quoted(tests: &mut Tests, page: &str, file: &str) -> Result {
    let (text, output) = (read(page)?, read(file)?);
    let blocks: Vec<&str> = text.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    if blocks.is_empty() || blocks.iter().any(|block| !output.contains(*block)) {
        tests.failed += 1;
        let what = format!("{page} shows another output than {file}");
        return Err(Failure { what, tests: *tests });
    }
    tests.passed += 1;
    Ok(())
}

/// Reads a file of the repository.
fn read(file: &str) -> Result<String> {
    fs::read_to_string(root().join(file)).map_err(|e| failure(format!("{file}: {e}")))
}
