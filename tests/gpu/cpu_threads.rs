//! The threads of launches on the CPU: how they are registered, their number, and launches that can't use them.

use std::ffi::{OsString, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::runtime::error::set_raised;
use tvm_ffi_codegen::runtime::registry::{list_global_names, set_global};
use tvm_ffi_codegen::runtime::{Any, Error, Function, Module, Tensor};
use tvm_ffi_codegen::spec::Launch;
use tvm_ffi_codegen::{Backend, Engine, Kernel, dim, register_globals};

use super::cpu::{ADD, add_launch, adds, object, object_of};
use super::devices::elements;
use super::engines;
use crate::support::{host_linker, sig};

/// The number of helper threads on this machine.
fn helpers() -> usize {
    (thread::available_parallelism().unwrap().get() - 1).min(63)
}

/// The helper threads' ids in the system.
fn tasks() -> Vec<libc::pid_t> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap());
    // another test's thread may end meanwhile
    let helps = |task: &std::fs::DirEntry| {
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|found| found.trim_end() == "tvm-ffi-blocks")
    };
    tasks.filter(helps).map(|task| task.file_name().to_str().unwrap().parse().unwrap()).collect()
}

unsafe extern "C" fn nothing(_x: u32, _y: u32, _z: u32, _grid_x: u32, _grid_y: u32, _grid_z: u32) {}

fn of_blocks() -> Kernel {
    let launch = Launch::new("blocks").grid([dim("n")]).args([]);
    Kernel::launch_on_cpu(launch, Kernel::address(nothing as *const u8))
}

/// Launches `count` blocks that do nothing.
fn blocks(function: &Function, count: usize) {
    function.call((&Tensor::from_vec(vec![0_i8; count], &[count as i64]).unwrap(),)).unwrap();
}

const BLOCKS: &str = "blocks(x: Tensor([n], int8))";

#[test]
fn all_functions_share_the_helpers() {
    for engine in engines() {
        for _ in 0..3 {
            // SAFETY: the function has the launch's parameters, none.
            let function = unsafe { engine.compile(&sig(BLOCKS), &of_blocks()) }.unwrap();
            for _ in 0..300 {
                blocks(&function, 2);
                blocks(&function, 200);
                blocks(&function, 20_000);
            }
            assert_eq!(tasks().len(), helpers());
        }
    }
}

/// Builds a library with `add`.
fn library(path: &Path, backend: Backend) {
    let kernel = Kernel::launch_on_cpu(add_launch(), Kernel::symbol("add"));
    let library = LibraryBuilder::new().backend(backend).function(&sig(ADD), &kernel).emit().unwrap();
    host_linker().object(library.into_bytes()).object(object()).link(path).unwrap();
}

/// A command that runs a test in its own process. The test finds the library's path in the variable.
fn alone(test: &str, variable: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("gpu::cpu_threads::{test}")]).env(variable, path);
    command
}

/// Runs a test in its own process, for a library of each backend. Returns the library's path there, and `None` in this
/// process.
fn in_own_process(test: &str, make: impl Fn(&Path, Backend)) -> Option<OsString> {
    const PATH: &str = "TEST_OF_LAUNCHES_ON_THE_CPU";
    let path = std::env::var_os(PATH);
    if path.is_none() {
        for backend in Backend::ALL {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("library.so");
            make(&path, *backend);
            let done = alone(test, PATH, &path).output().unwrap();
            let [out, err] = [&done.stdout, &done.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
            assert!(done.status.success() && out.contains("1 passed"), "{out}{err}");
        }
    }
    path
}

const NOTE: &str = "note(x: Tensor([n], int64))";

const NOTE_IN_C: &str = "#include <pthread.h>\n#include <stdint.h>\n#include <unistd.h>\n\
    void note(int64_t* x, int64_t n, uint32_t bx, uint32_t by, uint32_t bz, uint32_t gx, uint32_t gy, uint32_t gz) {\n\
      x[bx] = (int64_t)pthread_self();\n\
      usleep(2000);\n\
    }\n";

/// Builds a library whose blocks record their threads.
fn note_library(path: &Path, backend: Backend) {
    let kernel = Kernel::launch_on_cpu(Launch::new("note").grid([dim("n")]), Kernel::symbol("note"));
    let library = LibraryBuilder::new().backend(backend).function(&sig(NOTE), &kernel).emit().unwrap();
    host_linker().object(library.into_bytes()).object(object_of(NOTE_IN_C)).link(path).unwrap();
}

/// Loads the function of a library that is unloaded with it. The library holds a reference to the function that has
/// provided its threads.
fn load(path: impl AsRef<Path>, name: &str) -> Function {
    // SAFETY: the library is one of ours.
    let module = unsafe { Module::load_from_file(path.as_ref()) }.unwrap();
    // SAFETY: nothing is left of what the library's code has made.
    unsafe { module.unload_when_unused() }.unwrap();
    module.get_function(name).unwrap().unwrap()
}

/// Copies the library to another file, which the system loads in addition to the first.
fn copy(path: impl AsRef<Path>) -> PathBuf {
    let other = path.as_ref().with_file_name("other.so");
    std::fs::copy(path, &other).unwrap();
    other
}

/// The threads that ran the blocks of a launch.
fn threads(function: &Function) -> Vec<i64> {
    let x = Tensor::from_vec(vec![0_i64; 40], &[40]).unwrap();
    function.call((&x,)).unwrap();
    let mut seen = elements::<i64>(&x).to_vec();
    seen.sort();
    seen.dedup();
    seen
}

fn this_thread() -> i64 {
    // SAFETY: the function has no parameters.
    unsafe { libc::pthread_self() as i64 }
}

#[test]
fn libraries_ask_for_threads_at_their_first_launch() {
    let Some(path) = in_own_process("libraries_ask_for_threads_at_their_first_launch", note_library) else { return };
    let first = load(&path, "note");
    assert_eq!(threads(&first), [this_thread()], "nobody has registered threads");
    register_globals().unwrap();
    register_globals().unwrap();
    assert_eq!(threads(&first), [this_thread()], "a library asks once");
    let second = load(copy(&path), "note");
    let seen = threads(&second);
    assert!(seen.contains(&this_thread()), "the caller's thread is one of them");
    assert!(helpers() == 0 || seen.len() > 1, "{seen:?}");
    assert_eq!(threads(&first), [this_thread()]);
    assert_eq!(tasks().len(), helpers());
}

/// A parallel-for that calls the blocks backwards, and fails if their number isn't 40.
unsafe extern "C" fn backwards(
    blocks: i64,
    block: unsafe extern "C" fn(*mut c_void, i64) -> c_int,
    data: *mut c_void,
) -> c_int {
    CALLS.fetch_add(1, Ordering::Relaxed);
    if blocks != 40 {
        set_raised(Error::new("ThreadError", "there is no thread"));
        return -1;
    }
    // SAFETY: as promised to this function.
    (0..blocks).rev().map(|index| unsafe { block(data, index) }).find(|code| *code != 0).unwrap_or(0)
}

static CALLS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn a_parallel_for_of_another_stays() {
    let Some(path) = in_own_process("a_parallel_for_of_another_stays", note_library) else { return };
    let register = |value: fn() -> Any| {
        set_global("tvm_ffi_codegen.parallel_for", Function::from_packed(move |_| Ok(value())), true).unwrap();
    };
    register(|| Any::from(7_i64));
    let function = load(&path, "note");
    let x = Tensor::from_vec(vec![0_i64; 7], &[7]).unwrap();
    let error = function.call((&x,)).unwrap_err();
    let expected = "Mismatched type of result of `tvm_ffi_codegen.parallel_for`, which provides the threads of `note(x: Tensor([n], int64))`, \
                    expected a handle that is not NULL, got int";
    assert_eq!((error.kind(), error.message()), ("TypeError", expected));
    // SAFETY: the function is a parallel-for.
    register(|| unsafe { Any::from_opaque_ptr(backwards as *mut c_void) });
    register_globals().unwrap();
    Engine::new().unwrap();
    // a library keeps the function that it has found
    let function = load(copy(&path), "note");
    assert_eq!(threads(&function), [this_thread()]);
    let error = function.call((&x,)).unwrap_err();
    assert_eq!((error.kind(), error.message()), ("ThreadError", "there is no thread"));
    assert_eq!(CALLS.load(Ordering::Relaxed), 2);
}

#[cfg(feature = "cranelift")]
#[test]
fn a_module_of_the_callers_that_is_finished_has_threads() {
    use tvm_ffi_codegen::embed::cranelift::{Wrappers, finish, host_isa, jit_module};

    let mut module = jit_module(host_isa().unwrap()).unwrap();
    // uses a symbol, because a launch at an address of this process is rejected
    let launch = Launch::new("blocks").grid([dim("n")]).args([]);
    let kernel = Kernel::launch_on_cpu(launch, Kernel::symbol("sched_yield"));
    let added = Wrappers::in_process().function(&sig(BLOCKS), kernel).add_to(&mut module).unwrap();
    // SAFETY: the function takes nothing, and further arguments don't matter to it.
    let module = unsafe { finish(module, [added], ()) }.unwrap();
    let function = module.get_function("blocks").unwrap().unwrap();
    drop(module);
    (0..20).for_each(|_| blocks(&function, 20_000));
    assert!(list_global_names().contains(&"tvm_ffi_codegen.parallel_for".to_owned()));
    assert_eq!(tasks().len(), helpers());
}

#[test]
fn signals_end_no_thread() {
    extern "C" fn ignore(_: c_int) {}

    // SAFETY: all zeros are a `sigaction` without flags, so that a signal interrupts a wait, and the handler does
    // nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = ignore as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut()), 0);
    }
    // SAFETY: the function has the launch's parameters, none.
    let function = unsafe { Engine::new().unwrap().compile(&sig(BLOCKS), &of_blocks()) }.unwrap();
    for _ in 0..20 {
        blocks(&function, 20_000);
        for task in tasks() {
            // SAFETY: the signal has a handler.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), task, libc::SIGUSR2) };
        }
    }
    assert_eq!(tasks().len(), helpers());
}

#[test]
fn eight_threads_launch_at_once() {
    for engine in engines() {
        let kernel = Kernel::launch_on_cpu(add_launch(), Kernel::object(object(), "add"));
        // SAFETY: the function has the launch's parameters.
        let function = unsafe { engine.compile(&sig(ADD), &kernel) }.unwrap();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..50).for_each(|_| adds(&function)));
            }
        });
    }
}

/// Functions of two modules; blocks launch them.
static INNER: Mutex<Vec<Function>> = Mutex::new(Vec::new());
static DONE: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn inner(_x: u32, _y: u32, _z: u32, _grid_x: u32, _grid_y: u32, _grid_z: u32) {
    DONE.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn outer(_x: u32, _y: u32, _z: u32, _grid_x: u32, _grid_y: u32, _grid_z: u32) {
    let functions = INNER.lock().unwrap().clone();
    functions.iter().for_each(|function| blocks(function, 7));
}

#[test]
fn blocks_launch() {
    let launch = |name: &str, function: unsafe extern "C" fn(u32, u32, u32, u32, u32, u32)| {
        let launch = Launch::new(name).grid([dim("n")]).args([]);
        let kernel = Kernel::launch_on_cpu(launch, Kernel::address(function as *const u8));
        (sig(&format!("{name}(x: Tensor([n], int8))")), kernel)
    };
    let launches = [launch("outer", outer), launch("inner", inner)];
    for engine in engines() {
        let compile = || {
            let functions = launches.iter().map(|(signature, kernel)| (signature, kernel));
            // SAFETY: the functions have the launches' parameters, none.
            unsafe { engine.compile_module(functions) }.unwrap()
        };
        let (module, other) = (compile(), compile());
        let get = |module: &Module, name: &str| module.get_function(name).unwrap().unwrap();
        *INNER.lock().unwrap() = vec![get(&module, "inner"), get(&other, "inner")];
        DONE.store(0, Ordering::Relaxed);
        for _ in 0..20 {
            blocks(&get(&module, "outer"), 30);
        }
        INNER.lock().unwrap().clear();
        assert_eq!(DONE.load(Ordering::Relaxed), 20 * 30 * 2 * 7);
    }
}

/// In its own process, because a fork copies locks that other tests hold.
#[test]
fn a_forked_child_launches() {
    let Some(path) = in_own_process("a_forked_child_launches", library) else { return };
    // SAFETY: the library is one of ours.
    let module = unsafe { Module::load_from_file(Path::new(&path)) }.unwrap();
    // SAFETY: nothing is left of what the library's code has made.
    unsafe { module.unload_when_unused() }.unwrap();
    let of_library = module.get_function("add").unwrap().unwrap();
    // SAFETY: the function has the launch's parameters, none.
    let of_engine = unsafe { Engine::new().unwrap().compile(&sig(BLOCKS), &of_blocks()) }.unwrap();
    let rounds = |of_library: &Function, of_engine: &Function| {
        (0..5).for_each(|_| adds(of_library));
        (0..5).for_each(|_| blocks(of_engine, 20_000));
    };
    rounds(&of_library, &of_engine);
    for exits in [false, true] {
        // SAFETY: the process has no other thread that holds a lock.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            // a child that hangs is killed
            // SAFETY: the function only needs an integer.
            unsafe { libc::alarm(20) };
            let done = std::panic::catch_unwind(|| {
                rounds(&of_library, &of_engine);
                if !exits {
                    // unloads both libraries
                    drop(of_library);
                    drop(of_engine);
                    drop(module);
                }
            });
            let status = if done.is_ok() { 7 } else { 8 };
            match exits {
                // as the process ends, the library's destructors run
                // SAFETY: the other threads of the process don't exist in the child.
                true => unsafe { libc::exit(status) },
                // SAFETY: the function only needs an integer.
                false => unsafe { libc::_exit(status) },
            }
        }
        let mut status = 0;
        // SAFETY: the child is one of this process.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "the child's status is {status:#x}");
    }
    // the parent's threads are unchanged
    assert_eq!(tasks().len(), helpers());
    rounds(&of_library, &of_engine);
}

const LEAVING: &str = "TEST_OF_A_PROCESS_THAT_ENDS_DURING_A_LAUNCH";

const LEAVE_IN_C: &str = "#include <stdint.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
    void leave(uint32_t bx, uint32_t by, uint32_t bz, uint32_t gx, uint32_t gy, uint32_t gz) {\n\
      if (bx == 1) exit(7);\n\
      for (;;) pause();\n\
    }\n";

#[test]
fn a_process_ends_during_a_launch() {
    let signature = sig("leave(x: Tensor([n], int8))");
    let Some(path) = std::env::var_os(LEAVING) else {
        if helpers() == 0 {
            return eprintln!("skipped: one thread can't do two blocks at once");
        }
        for backend in Backend::ALL {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("leave.so");
            let kernel = Kernel::launch_on_cpu(Launch::new("leave").grid([dim("n")]).args([]), Kernel::symbol("leave"));
            let library = LibraryBuilder::new().backend(*backend).function(&signature, &kernel).emit().unwrap();
            host_linker().object(library.into_bytes()).object(object_of(LEAVE_IN_C)).link(&path).unwrap();
            let mut process = alone("a_process_ends_during_a_launch", LEAVING, &path);
            // the process exits early, so it leaves objects behind
            let done = process.env(crate::live::COUNT_ONLY, "1").output().unwrap();
            assert_eq!(done.status.code(), Some(7), "{}", String::from_utf8_lossy(&done.stdout));
        }
        return;
    };
    // a process that hangs is killed
    // SAFETY: the function only needs an integer.
    unsafe { libc::alarm(20) };
    register_globals().unwrap();
    // SAFETY: the library is one of ours.
    let module = unsafe { Module::load_from_file(Path::new(&path)) }.unwrap();
    blocks(&module.get_function("leave").unwrap().unwrap(), 2);
}

#[test]
fn blocks_of_three_dimensions_are_done_once_each() {
    let launch = Launch::new("mark").grid([dim("k"), dim("n"), dim("m")]);
    let signature = sig("mark(x: Tensor([m, n, k], int32))");
    #[allow(clippy::too_many_arguments)]
    unsafe extern "C" fn mark(
        x: *mut i32,
        _m: i64,
        n: i64,
        k: i64,
        bx: u32,
        by: u32,
        bz: u32,
        gx: u32,
        gy: u32,
        _gz: u32,
    ) {
        assert_eq!((gx as i64, gy as i64), (k, n));
        // SAFETY: the tensor has an element for each block.
        unsafe { *x.add(((bz * gy + by) * gx + bx) as usize) += 1 };
    }
    for engine in engines() {
        let kernel = Kernel::launch_on_cpu(launch.clone(), Kernel::address(mark as *const u8));
        // SAFETY: the function has the launch's parameters.
        let function = unsafe { engine.compile(&signature, &kernel) }.unwrap();
        for shape in [[1, 1, 1], [2, 1, 1], [1, 1, 2], [3, 5, 7], [40, 30, 20]] {
            let count: i64 = shape.iter().product();
            let x = Tensor::from_vec(vec![0_i32; count as usize], &shape).unwrap();
            for round in 1..20 {
                function.call((&x,)).unwrap();
                assert!(elements::<i32>(&x).iter().all(|done| *done == round));
            }
        }
    }
}
