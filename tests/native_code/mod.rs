//! Kernels that are passed with their code: a C compiler's objects and archives, LLVM IR, addresses with owners.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

mod errors;
mod forms;
mod frames;
mod given;
mod lifetimes;
mod several;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use tvm_ffi_codegen::runtime::{Function, Tensor};
use tvm_ffi_codegen::{Backend, Engine, EngineError, Kernel};

use crate::support::{compiler, sig};

/// Compiles a source with a C compiler; returns the output file.
fn compiled(source: &str, flags: &[&str], output: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("kernel.c"), source).unwrap();
    let done = compiler::c().args(flags).args(["kernel.c", "-o", output]).current_dir(folder.path()).output().unwrap();
    assert!(done.status.success(), "{flags:?}\n{}", String::from_utf8_lossy(&done.stderr));
    fs::read(folder.path().join(output)).unwrap()
}

/// A position-independent, optimised object.
pub(crate) fn object(source: &str) -> Vec<u8> {
    object_by(source, &["-O2", "-fPIC"])
}

fn object_by(source: &str, flags: &[&str]) -> Vec<u8> {
    compiled(source, &[&["-c"], flags].concat(), "kernel.o")
}

/// An engine for each backend.
fn engines() -> impl Iterator<Item = Engine> {
    Backend::ALL.iter().map(|&backend| Engine::builder().backend(backend).build().unwrap())
}

fn compile(engine: &Engine, signature: &str, kernel: &Kernel) -> Result<Function, EngineError> {
    // SAFETY: the kernels of these tests have the prototypes of their signatures.
    unsafe { engine.compile(&sig(signature), kernel) }
}

/// The error message of each backend for a compilation that must fail.
fn refusals(signature: &str, kernel: &Kernel) -> Vec<String> {
    let refusal = |engine: Engine| {
        let error = compile(&engine, signature, kernel)
            .err()
            .unwrap_or_else(|| panic!("{:?} takes it", engine.jit().backend()));
        error.to_string()
    };
    engines().map(refusal).collect()
}

fn int(function: &Function, args: &[i64]) -> i64 {
    let result = match args {
        [] => function.call(()),
        [a] => function.call((*a,)),
        [a, b] => function.call((*a, *b)),
        _ => panic!("{args:?}"),
    };
    i64::try_from(result.unwrap()).unwrap()
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec().unwrap()
}

/// Whether memory is mapped at an address of this process.
fn is_mapped(address: usize) -> bool {
    let maps = fs::read_to_string(Path::new(OsStr::new("/proc/self/maps"))).unwrap();
    maps.lines().any(|line| {
        let (start, rest) = line.split_once('-').unwrap();
        let (end, _) = rest.split_once(' ').unwrap();
        let [start, end] = [start, end].map(|text| usize::from_str_radix(text, 16).unwrap());
        (start..end).contains(&address)
    })
}
