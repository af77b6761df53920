//! Launches in shared libraries, and in modules of the caller's.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSymbol};
use tvm_ffi_codegen::artifact::{LibraryBuilder, inspect};
use tvm_ffi_codegen::runtime::{Function, Module};
use tvm_ffi_codegen::spec::Launch;
use tvm_ffi_codegen::{Backend, Kernel, dim};

use super::devices::{Devices, cuda, elements, image};
use super::launches::{ADD, call3, sums, vectors};
use super::real;
use crate::support::{host_linker, sig};

fn kernel() -> Kernel {
    let launch = Launch::new("add").grid([(dim("n") + 127) / 128]).block([128]);
    Kernel::launch(launch, [image("sm_80", 80), image("sm_90a", 90)])
}

/// Builds a library of one function, with images for two architectures.
pub fn library(folder: &Path, backend: Backend) -> PathBuf {
    let path = folder.join("add.so");
    let kernel = kernel();
    let library = LibraryBuilder::new().backend(backend).function(&sig(ADD), &kernel);
    let library = library.function(&sig("prepare(device: device)"), &Kernel::prepare([&kernel]));
    host_linker().object(library.emit().unwrap().into_bytes()).link(&path).unwrap();
    path
}

fn load(path: &Path) -> (Module, Function) {
    // SAFETY: the library is one of ours.
    let module = unsafe { Module::load_from_file(path) }.unwrap();
    let function = module.get_function("add").unwrap().unwrap();
    (module, function)
}

#[test]
fn a_library_finds_the_driver_when_it_is_called() {
    let devices = Devices::cuda();
    for backend in Backend::ALL {
        devices.reset();
        let folder = tempfile::tempdir().unwrap();
        let path = library(folder.path(), *backend);
        let needed = inspect(&path).unwrap().needed_libraries;
        let is_systems = |name: &String| match cfg!(windows) {
            true => !name.eq_ignore_ascii_case("nvcuda.dll"),
            false => name.starts_with("libc.so"),
        };
        assert!(needed.iter().all(is_systems), "{needed:?}");
        let (module, function) = load(&path);
        devices.assert_calls(0);
        for number in 0..2 {
            let tensors = vectors(devices.device(number), 300);
            call3(&function, &tensors).unwrap();
            assert_eq!(elements::<f32>(&tensors[2]), sums(300));
        }
        devices.assert_held(2, [1, 1]);
        // SAFETY: nothing is left of what the library's code has made.
        unsafe { module.unload_when_unused() }.unwrap();
        drop((module, function));
        devices.assert_held(0, [0, 0]);
    }
}

/// The symbols that an object of the library leaves undefined, except those of the C API.
fn undefined(triple: &str, backend: Backend) -> BTreeSet<String> {
    let library = LibraryBuilder::new().target(triple.parse().unwrap()).backend(backend);
    let object = library.function(&sig(ADD), &kernel()).emit().unwrap();
    let file = object::File::parse(object.as_bytes()).unwrap();
    let undefined = file.symbols().filter(|symbol| symbol.is_undefined());
    let names = undefined.map(|symbol| symbol.name().unwrap().to_owned());
    names.filter(|name| !name.is_empty() && !name.starts_with("TVMFFI") && !name.starts_with("__chkstk")).collect()
}

#[test]
fn objects_take_what_their_system_has() {
    let posix = ["dlerror", "dlopen", "dlsym", "nanosleep"];
    let windows = ["GetProcAddress", "LoadLibraryA", "Sleep", "atexit"];
    for backend in Backend::ALL {
        let assert = |triple, expected: &[&str]| {
            let expected = expected.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
            assert_eq!(undefined(triple, *backend), expected, "{triple}, {backend}");
        };
        assert("x86_64-unknown-linux-gnu", &posix);
        assert("x86_64-pc-windows-gnu", &windows);
    }
}

const LIBRARY: &str = "TEST_OF_A_LIBRARY_WITHOUT_A_DRIVER";

/// In its own process, because the stand-in is loaded in this one.
#[test]
fn a_machine_without_a_driver_is_told_at_the_call() {
    if real::driver().is_some() {
        return eprintln!("skipped: this machine has a driver");
    }
    let Some(path) = std::env::var_os(LIBRARY) else {
        for backend in Backend::ALL {
            let folder = tempfile::tempdir().unwrap();
            let path = library(folder.path(), *backend);
            let done = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "gpu::libraries::a_machine_without_a_driver_is_told_at_the_call"])
                .env(LIBRARY, &path)
                .output()
                .unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        }
        return;
    };
    let (_module, function) = load(Path::new(&path));
    let error = call3(&function, &vectors(cuda(0), 1)).unwrap_err();
    let why = match cfg!(windows) {
        true => "nvcuda.dll can't be opened",
        false => "libcuda.so.1: cannot open shared object file: No such file or directory",
    };
    let text = format!(": there is no CUDA driver on this machine: {why}");
    // if the machine has a driver but no device, the driver reports that
    assert!(error.ends_with(&text) || error.contains("`cuInit` failed with"), "{error}");
    call3(&function, &vectors(cuda(0), 0)).unwrap();
}

#[cfg(feature = "_llvm")]
#[test]
fn a_module_of_the_callers_llvm_launches() {
    use inkwell::OptimizationLevel;
    use inkwell::context::Context;
    use inkwell::targets::{CodeModel, InitializationConfig, RelocMode, Target, TargetMachine};
    use tvm_ffi_codegen::embed::llvm::{Wrappers, finish};

    let devices = Devices::cuda();
    let context = Context::create();
    Target::initialize_native(&InitializationConfig::default()).unwrap();
    let triple = TargetMachine::get_default_triple();
    let target = Target::from_triple(&triple).unwrap();
    let level = OptimizationLevel::Default;
    let machine = target.create_target_machine(&triple, "", "", level, RelocMode::PIC, CodeModel::Default).unwrap();
    let caller = context.create_module("caller");
    caller.set_triple(&machine.get_triple());
    caller.set_data_layout(&machine.get_target_data().get_data_layout());
    let added = Wrappers::in_process().function(&sig(ADD), kernel()).add_to(&caller).unwrap();
    // SAFETY: the kernel of kernels.c has these parameters.
    let module = unsafe { finish(&caller, &machine, [added], ()) }.unwrap();
    let function = module.get_function("add").unwrap().unwrap();
    let tensors = vectors(devices.device(1), 300);
    call3(&function, &tensors).unwrap();
    assert_eq!(elements::<f32>(&tensors[2]), sums(300));
    drop((module, function));
    devices.assert_held(0, [0, 0]);
}

#[cfg(feature = "cranelift")]
#[test]
fn a_module_of_the_callers_launches() {
    use tvm_ffi_codegen::embed::cranelift::{Wrappers, finish, host_isa, jit_module};

    let devices = Devices::cuda();
    let mut module = jit_module(host_isa().unwrap()).unwrap();
    let added = Wrappers::in_process().function(&sig(ADD), kernel()).add_to(&mut module).unwrap();
    // SAFETY: the kernel of kernels.c has these parameters.
    let module = unsafe { finish(module, [added], ()) }.unwrap();
    let function = module.get_function("add").unwrap().unwrap();
    let tensors = vectors(devices.device(1), 300);
    call3(&function, &tensors).unwrap();
    assert_eq!(elements::<f32>(&tensors[2]), sums(300));
    drop((module, function));
    devices.assert_held(0, [0, 0]);
}
