//! What a call costs that generated code makes, in instructions, beside the same in C.

use std::fs;

use crate::command::{Tests, cmd, root, target_folder};
use crate::run::Failure;
use crate::tools::{UPSTREAM, python_package};

/// The calls in the two runs whose difference counts.
const CALLS: [u64; 2] = [1000, 2000];
/// The driver's words for C's function and the generated one.
const ROWS: [(&str, &str, &str); 2] =
    [("by symbol", "c-symbol", "symbol"), ("by global, looked up before", "c-global", "global")];

/// The table: instructions of one call, callee included, counted by callgrind.
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
            let [c, generated] = [c, generated].map(|which| instructions(&driver, which));
            let (c, generated) = (c?, generated?);
            println!("| {call} | {backend} | {c:.0} | {generated:.0} | {:.2} |", generated / c);
        }
    }
    Ok(Tests::default())
}

/// The instructions of one call.
fn instructions(driver: &str, which: &str) -> Result<f64, Failure> {
    let count = |calls: u64| {
        let log = format!("{driver}.log");
        let (to_log, calls) = (format!("--log-file={log}"), calls.to_string());
        let words = ["--tool=callgrind", "--callgrind-out-file=/dev/null", &to_log, driver, which, &calls];
        cmd("valgrind", &words).run()?;
        let text = fs::read_to_string(&log).unwrap_or_default();
        let number = text.lines().find_map(|line| line.split("Collected :").nth(1)?.trim().parse::<u64>().ok());
        number.ok_or_else(|| Failure { what: format!("callgrind counted nothing:\n{text}"), tests: Tests::default() })
    };
    let [few, many] = CALLS;
    Ok((count(many)? - count(few)?) as f64 / (many - few) as f64)
}
