//! Launch hooks that environment variables set.

use std::path::{Path, PathBuf};
use std::process::Command;

use tvm_ffi_codegen::runtime::Module;
use tvm_ffi_codegen::{Backend, register_globals};

use super::brought;
use super::devices::cuda;
use super::launches::{call3, vectors};
use super::libraries::library;
use super::standin::Driver;
use crate::support::compiler;

const LIBRARY: &str = "TEST_OF_LAUNCH_HOOKS";

/// Two launches of a library, in a process with these variables. Returns what it prints.
fn launched(variables: &[(&str, &Path)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "gpu::hook_variables::environment_variables_set_hooks", "--nocapture"]);
    command.env(LIBRARY, library(folder.path(), Backend::default()));
    let done = command.envs(variables.iter().copied()).output().unwrap();
    let [out, err] = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(done.status.success(), "{out}{err}");
    let is_ours = |line: &&str| ["tvm_ffi_codegen:", "nvtx", "roctx"].iter().any(|start| line.starts_with(start));
    out.lines().chain(err.lines()).filter(is_ours).map(|line| format!("{line}\n")).collect()
}

/// Builds the profiler.
fn profiler(folder: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let source = folder.join("profiler.c");
    std::fs::write(&source, include_str!("driver/profiler.c")).unwrap();
    let path = folder.join(name);
    let mut compiler = compiler::c();
    compiler.args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"]).arg(&path).arg(&source).args(flags);
    assert!(compiler.status().unwrap().success());
    path
}

#[test]
fn environment_variables_set_hooks() {
    if let Some(path) = std::env::var_os(LIBRARY) {
        let driver = Driver::cuda();
        register_globals().unwrap();
        // SAFETY: the library is one of ours.
        let module = unsafe { Module::load_from_file(Path::new(&path)) }.unwrap();
        let function = module.get_function("add").unwrap().unwrap();
        let tensors = vectors(cuda(1), 300);
        // without a current context the driver doesn't tell the sizes of parameters
        call3(&function, &tensors).unwrap();
        driver.make_current(1);
        call3(&function, &tensors).unwrap();
        let [x, y, z] = tensors.each_ref().map(|tensor| tensor.as_dl_tensor().data.addr());
        let shown = format!("{x:#018x}, {y:#018x}, {z:#018x}, 0x000000000000012c");
        println!("\ntvm_ffi_codegen: expected params=[{shown}]");
        assert_eq!(driver.calls_of("cuLaunch").len(), 2);
        return;
    }
    let log = "TVM_FFI_CODEGEN_LOG_LAUNCHES";
    let ranges = "TVM_FFI_CODEGEN_LAUNCH_RANGES";
    let printed = launched(&[(log, Path::new("1"))]);
    let lines: Vec<&str> = printed.lines().collect();
    let [expected, without_sizes, launch] = lines[..] else { panic!("{printed}") };
    let params = expected.strip_prefix("tvm_ffi_codegen: expected ").unwrap();
    let text = "tvm_ffi_codegen: launch add grid=(3, 1, 1) block=(128, 1, 1) shared_memory=0 stream=0x0 device=cuda:1";
    assert_eq!((without_sizes, launch), (text, &*format!("{text} {params}")));
    for off in ["", "0"] {
        assert_eq!(launched(&[(log, Path::new(off))]).lines().count(), 1);
    }

    let folder = tempfile::tempdir().unwrap();
    let problem = |printed: String| printed.lines().nth(1).unwrap_or_default().to_owned();
    let printed = problem(launched(&[(ranges, Path::new("itt"))]));
    assert_eq!(printed, format!("tvm_ffi_codegen: {ranges}: expected nvtx or roctx, got itt"));
    // rocTX is found by its name
    let printed = problem(launched(&[(ranges, Path::new("roctx"))]));
    assert!(printed.starts_with(&format!("tvm_ffi_codegen: {ranges}: libr")), "{printed}");
    profiler(folder.path(), "libroctx64.so.4", &[]);
    let printed = launched(&[(ranges, Path::new("roctx")), ("LD_LIBRARY_PATH", folder.path())]);
    assert!(printed.contains("roctx push add\nroctx pop\n"), "{printed}");
    // without a profiler there are no ranges
    assert_eq!(launched(&[(ranges, Path::new("nvtx"))]).lines().count(), 1);
    let injection = "NVTX_INJECTION64_PATH";
    let none = folder.path().join("none.so");
    let printed = problem(launched(&[(ranges, Path::new("nvtx")), (injection, &none)]));
    assert!(printed.starts_with(&format!("tvm_ffi_codegen: {ranges}: ")) && printed.contains("none.so"), "{printed}");
    let Some(headers) = brought("TVM_FFI_CODEGEN_NVTX_HEADERS") else { return };
    let tool = profiler(folder.path(), "tool.so", &["-DNVTX", "-I", headers.to_str().unwrap()]);
    let printed = launched(&[(ranges, Path::new("nvtx")), (injection, &tool)]);
    assert!(printed.contains("nvtx push add\nnvtx pop\n"), "{printed}");
}
