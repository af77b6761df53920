//! Libraries for Windows, run by Wine.

use super::*;
use crate::wine::{GCC, TRIPLE, Wine, windows_folder, windows_path, windows_paths};

/// Runs the host in C with our runtime, with the library of each backend.
pub fn windows() -> Result<Tests> {
    let wine = Wine::prepare()?;
    let folder = folder("windows")?;
    let mut tests = Tests::default();
    wine.cargo(&["build", "--package", "tvm-ffi-runtime-c"]).run()?;
    let runtime = text(&windows_folder().join("libtvm_ffi_runtime.dll.a"));
    let host = folder.join("host.exe");
    let inputs = [c_host(GCC, &folder)?, vec![runtime.clone()]].concat();
    link_program(GCC, &inputs, &[], &host)?;
    let kernels = folder.join("kernels.o");
    compile(GCC, &[], &source("kernels.c"), &kernels)?;
    for backend in BACKENDS {
        let options = ["--target", TRIPLE, "--runtime", &runtime];
        let library = emit_linked(&folder.join(backend), "library.dll", backend, &options, &kernels)?;
        let run = wine.run(&host, &[&windows_path(&library)]);
        let run = run.env("WINEPATH", &windows_paths(&[&windows_folder()]));
        expect(&mut tests, &format!("{backend}, C on ours"), run, EXPECTED)?;
    }
    Ok(tests)
}
