//! The cost of a call from generated code, in instructions, compared with the same call in C.

use std::fs;

use crate::callgrind;
use crate::command::{Tests, cmd, root, target_folder};
use crate::run::Failure;
use crate::tools::{UPSTREAM, python_package};

/// The driver's names for C's function and the generated one.
const ROWS: [(&str, &str, &str); 2] =
    [("by symbol", "c-symbol", "symbol"), ("by global, looked up before", "c-global", "global")];

/// The table: instructions of one call, callee included, counted with callgrind.
pub fn table() -> Result<Tests, Failure> {
    let package = python_package(&UPSTREAM).join("tvm_ffi");
    let (include, library) = (package.join("include").display().to_string(), package.join("lib").display().to_string());
    let folder = root().join("target/calls-cost");
    let failure = |what: String| Failure { what, tests: Tests::default() };
    fs::create_dir_all(&folder).map_err(|e| failure(format!("{}: {e}", folder.display())))?;
    let at = |name: &str| folder.join(name).display().to_string();
    crate::command::cargo(&["build", "--features", "llvm22-1", "--example", "calls_object"]).run()?;
    let example = target_folder().join("debug/examples/calls_object").display().to_string();
    println!("\n| call | backend | C (clang -O2) | generated | ratio |\n| --- | --- | ---: | ---: | ---: |");
    for backend in ["cranelift", "llvm"] {
        let (object, driver) = (at(&format!("{backend}.o")), at(backend));
        cmd(&example, &[backend, &object]).run()?;
        let search = format!("-Wl,-rpath,{library}");
        let words = ["-std=gnu11", "-O2", "-isystem", &include, "benches/calls/driver.c", &object, "-o", &driver];
        cmd("clang-22", &[&words[..], &["-L", &library, "-ltvm_ffi", &search]].concat()).run()?;
        for (call, c, generated) in ROWS {
            let [c, generated] = [c, generated].map(|which| callgrind::per_call(&driver, which, |valgrind| valgrind));
            let (c, generated) = (c?, generated?);
            println!("| {call} | {backend} | {c:.0} | {generated:.0} | {:.2} |", generated / c);
        }
    }
    Ok(Tests::default())
}
