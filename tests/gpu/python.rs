//! Libraries with launches, loaded by Python.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::{Backend, Kernel};

use super::brought;
use super::libraries::library;
use super::{real, standin, streams};
use crate::support::{host_linker, sig};

#[test]
fn python_launches_kernels_of_a_library() {
    let Some(python_path) = brought("TVM_FFI_CODEGEN_PYTHON_PATH") else { return };
    for backend in Backend::ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = library(folder.path(), *backend);
        let done = Command::new("python3")
            .args(["tests/gpu/launch.py".as_ref(), standin::path_of_cuda().as_os_str(), path.as_os_str()])
            .env("PYTHONPATH", &python_path)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(done.status.success(), "{}{}", text(&done.stdout), text(&done.stderr));
        assert_eq!(
            text(&done.stdout),
            "[0.0, 1.5, 3.0, 4.5, 6.0]\n\
             cuLaunchKernelEx(grid 1 1 1, block 128 1 1, shared 0, device 1)\n\
             RuntimeError: `cuLaunchKernelEx` failed with CUDA_ERROR_LAUNCH_FAILED (719)\n"
        );
    }
}

/// A caller's stream arrives from Python in every form that `tvm_ffi` has for it.
#[test]
fn python_passes_streams() {
    let Some(python_path) = brought("TVM_FFI_CODEGEN_PYTHON_PATH") else { return };
    for backend in Backend::ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("add.so");
        let kernel = Kernel::launch(streams::launch().stream("stream"), [standin::ptx("sm_80", 80)]);
        let library = LibraryBuilder::new().backend(*backend).function(&sig(&streams::add_on()), &kernel);
        host_linker().object(library.emit().unwrap().into_bytes()).link(&path).unwrap();
        let done = Command::new("python3")
            .args(["tests/gpu/stream.py".as_ref(), standin::path_of_cuda().as_os_str(), path.as_os_str()])
            .env("PYTHONPATH", &python_path)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(done.status.success(), "{}{}", text(&done.stdout), text(&done.stderr));
        assert_eq!(text(&done.stdout), "0x1001\n0x1001\n0x2001\n0x3001\n0x0\n0x0\n[0.0, 1.5, 3.0, 4.5, 6.0]\n");
    }
}

/// Runs a Python script that uses PyTorch, with a library that launches; returns its output. If the machine has no
/// PyTorch, prints that the test is skipped and returns `None`.
fn with_torch(script: &str, library: &Path) -> Option<String> {
    if real::driver().is_none() {
        eprintln!("skipped: PyTorch needs a real device; `cargo xtask gpu` runs this test");
        return None;
    }
    let python_path = brought("TVM_FFI_CODEGEN_PYTHON_PATH")?;
    let python =
        |words: &[&OsStr]| Command::new("python3").args(words).env("PYTHONPATH", &python_path).output().unwrap();
    if !python(&["-c".as_ref(), "import torch".as_ref()]).status.success() {
        eprintln!("skipped: this machine's Python has no PyTorch");
        return None;
    }
    let done = python(&[script.as_ref(), library.as_os_str()]);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success(), "{}{}", text(&done.stdout), text(&done.stderr));
    Some(text(&done.stdout))
}

#[test]
fn torch_launches_kernels_of_a_library() {
    for backend in Backend::ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = library(folder.path(), *backend);
        let Some(printed) = with_torch("tests/gpu/torch_launch.py", &path) else { return };
        assert_eq!(
            printed,
            "default stream: True\nanother stream: True\ngraph: True True True\nValueError: expected cuda, got cpu\n"
        );
    }
}
