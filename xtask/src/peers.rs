//! Our wrappers next to those of other generators: the comparison of `docs/performance.md`.

use crate::command::{Tests, all, cargo, cmd, target_folder};
use crate::python::CUTE_PACKAGES;
use crate::run::Failure;
use crate::tools::{APACHE_TVM, CUTE, ML_DTYPES, NUMPY, TYPING_EXTENSIONS, UPSTREAM, python_package};
use crate::with_llvm;

/// Our contenders, and their arguments.
const OURS: [(&str, &str); 3] = [
    ("our-llvm", "--backend llvm"),
    ("our-llvm-v3", "--backend llvm --cpu x86-64-v3"),
    ("our-clif", "--backend cranelift"),
];

/// Runs the harness of `benches/peers` with all contenders, and prints its tables.
pub fn table() -> Result<Tests, Failure> {
    let build = ["build", "--release", "--example", "bench_contender", "--features", with_llvm::FEATURES];
    cargo(&build).run()?;
    let contender = target_folder().join("release/examples/bench_contender");
    let out = target_folder().join("peers").display().to_string();
    std::fs::create_dir_all(&out).map_err(|e| Failure { what: format!("{out}: {e}"), tests: Tests::default() })?;
    let added = OURS.map(|(name, args)| format!("{name}={} {args}", contender.display()));
    let words: Vec<&str> = added.iter().flat_map(|added| ["--add", added]).collect();
    let packages = [&UPSTREAM, &APACHE_TVM, &CUTE, &NUMPY, &ML_DTYPES, &TYPING_EXTENSIONS].map(python_package);
    let dsl = packages[2].join(CUTE_PACKAGES);
    let path: Vec<String> = packages.iter().chain([&dsl]).map(|path| path.display().to_string()).collect();
    let run = cmd("python3", &[&["benches/peers/run.py", "--out", &out], &words[..]].concat());
    all([run.env("PYTHONPATH", &path.join(":"))])
}
