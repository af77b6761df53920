//! The threads of launches on the CPU: how many there are, when they end, and who does the blocks where they can't.

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::lower::{RuntimeHelpers, lower};
use tvm_ffi_codegen::runtime::abi::TVMFFISafeCallType;
use tvm_ffi_codegen::runtime::{Function, Module, Tensor};
use tvm_ffi_codegen::spec::Launch;
use tvm_ffi_codegen::{Backend, Engine, EngineBuilder, Kernel, dim, ir};

use super::cpu::{ADD, add_launch, adds, object, object_of};
use super::devices::elements;
use super::engines;
use crate::support::{host_linker, sig};

/// The threads that a pool has at most.
const MOST_HELPERS: usize = 63;

/// The threads that a pool has on this machine.
fn helpers() -> usize {
    unsafe extern "C" {
        safe fn get_nprocs() -> c_int;
    }
    (usize::try_from(get_nprocs()).unwrap() - 1).min(MOST_HELPERS)
}

/// Runs a test on a thread of a name. Threads that it makes inherit the name, by which they are told from those of other tests.
fn on_thread(name: &str, test: impl FnOnce(&str) + Send) {
    assert!(name.len() < 16, "the system cuts {name}");
    thread::scope(|scope| {
        let test = || test(name);
        thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, test).unwrap().join().unwrap();
    });
}

/// The threads of a name, as the system numbers them.
fn tasks(name: &str) -> Vec<libc::pid_t> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap());
    // a thread may end meanwhile
    let of_name = |task: &std::fs::DirEntry| {
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|found| found.trim_end() == name)
    };
    tasks.filter(of_name).map(|task| task.file_name().to_str().unwrap().parse().unwrap()).collect()
}

/// The number of threads that were made by the thread of a name.
fn threads_of(name: &str) -> usize {
    tasks(name).len() - 1
}

/// A thread is listed for a moment after it was joined.
fn wait_until_none(name: &str) {
    let start = Instant::now();
    while threads_of(name) > 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "{} threads of {name} are left", threads_of(name));
        thread::sleep(Duration::from_millis(1));
    }
}

unsafe extern "C" fn nothing(_x: u32, _y: u32, _z: u32, _grid_x: u32, _grid_y: u32, _grid_z: u32) {}

fn of_blocks() -> Kernel {
    let launch = Launch::new("blocks").grid([dim("n")]).args([]);
    Kernel::launch_on_cpu(launch, Kernel::address(nothing as *const c_void))
}

/// Launches so many blocks of nothing.
fn blocks(function: &Function, count: usize) {
    function.call((&Tensor::from_vec(vec![0_i8; count], &[count as i64]).unwrap(),)).unwrap();
}

const BLOCKS: &str = "blocks(x: Tensor([n], int8))";

#[test]
fn threads_stay_until_the_function_is_dropped() {
    for (number, engine) in engines().iter().enumerate() {
        on_thread(&format!("stays{number}"), |name| {
            // SAFETY: the function has the launch's parameters, none.
            let function = unsafe { engine.compile(&sig(BLOCKS), &of_blocks()) }.unwrap();
            blocks(&function, 1);
            assert_eq!(threads_of(name), 0, "one block needs no other thread");
            for _ in 0..300 {
                blocks(&function, 2);
                blocks(&function, 200);
                assert_eq!(threads_of(name), helpers());
            }
            drop(function);
            wait_until_none(name);
        });
    }
}

/// A library with `add`.
fn library(path: &Path, backend: Backend) {
    let kernel = Kernel::launch_on_cpu(add_launch(), Kernel::symbol("add"));
    let library = LibraryBuilder::new().backend(backend).function(&sig(ADD), &kernel).emit().unwrap();
    host_linker().object(library.into_bytes()).object(object()).link(path).unwrap();
}

/// A test in a process of its own, which finds the library's path in the variable.
fn alone(test: &str, variable: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("gpu::cpu_threads::{test}")]).env(variable, path);
    command
}

#[test]
fn threads_stay_until_the_library_is_unloaded() {
    for (number, backend) in Backend::ALL.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("add.so");
        library(&path, *backend);
        on_thread(&format!("library{number}"), |name| {
            for _ in 0..3 {
                // SAFETY: the library is one of ours.
                let module = unsafe { Module::load_from_file(&path) }.unwrap();
                let function = module.get_function("add").unwrap().unwrap();
                adds(&function);
                assert_eq!(threads_of(name), helpers());
                // SAFETY: nothing is left of what the library's code has made.
                unsafe { module.unload_when_unused() }.unwrap();
                drop(module);
                adds(&function);
                assert_eq!(threads_of(name), helpers());
                drop(function);
                wait_until_none(name);
            }
        });
    }
}

#[cfg(feature = "cranelift")]
#[test]
fn threads_stay_in_a_module_of_the_callers_that_is_finished() {
    use tvm_ffi_codegen::embed::cranelift::{Library, finish, host_isa, jit_module};

    on_thread("finished", |name| {
        let mut module = jit_module(host_isa().unwrap()).unwrap();
        // an address of this process is refused
        let launch = Launch::new("blocks").grid([dim("n")]).args([]);
        let kernel = Kernel::launch_on_cpu(launch, Kernel::symbol("sched_yield"));
        let added = Library::in_process().function(&sig(BLOCKS), kernel).add_to(&mut module).unwrap();
        // SAFETY: the function takes nothing, and further arguments don't matter to it.
        let module = unsafe { finish(module, [added], ()) }.unwrap();
        let function = module.get_function("blocks").unwrap().unwrap();
        drop(module);
        (0..20).for_each(|_| blocks(&function, 20));
        assert_eq!(threads_of(name), helpers());
        drop(function);
        wait_until_none(name);
    });
}

#[test]
fn threads_end_with_the_launch_where_nobody_runs_destructors() {
    for (number, engine) in engines().iter().enumerate() {
        on_thread(&format!("alone{number}"), |name| {
            let module = lower(&sig(BLOCKS), &of_blocks(), RuntimeHelpers::Import).unwrap();
            assert!(module.destructors.is_empty());
            let code = engine.load(&ir::verify(module).unwrap()).unwrap();
            let address = code.function(&sig(BLOCKS).symbol()).unwrap();
            // SAFETY: it is the address of a wrapper.
            let wrapper = unsafe { std::mem::transmute::<*const u8, TVMFFISafeCallType>(address) };
            // SAFETY: the function owns the code.
            let function = unsafe { Function::from_code(wrapper, code) };
            for _ in 0..20 {
                blocks(&function, 20);
                wait_until_none(name);
            }
        });
    }
}

/// The symbols of the C library as a machine has them that isn't this one.
fn on_machine(backend: Backend, symbols: &[(&str, *const u8)]) -> Engine {
    let builder = Engine::builder().backend(backend);
    // SAFETY: the functions have the prototypes of those that they stand for, and are this program's.
    let with = |builder: EngineBuilder, (name, address): &(&str, *const u8)| unsafe { builder.symbol(*name, *address) };
    symbols.iter().fold(builder, with).build().unwrap()
}

extern "C" fn one_processor() -> c_int {
    1
}

extern "C" fn hundred_processors() -> c_int {
    100
}

static MADE: AtomicUsize = AtomicUsize::new(0);

/// `pthread_create` that fails where there are three threads.
unsafe extern "C" fn create_three(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    code: extern "C" fn(*mut c_void) -> *mut c_void,
    data: *mut c_void,
) -> c_int {
    match MADE.fetch_add(1, Ordering::Relaxed) {
        // SAFETY: as for the caller.
        0..3 => unsafe { libc::pthread_create(thread, attributes, code, data) },
        _ => libc::EAGAIN,
    }
}

#[test]
fn threads_are_as_many_as_can_be() {
    let processors = |of: extern "C" fn() -> c_int| ("get_nprocs", of as *const u8);
    let create = ("pthread_create", create_three as *const u8);
    for (number, backend) in Backend::ALL.iter().enumerate() {
        let machines: [(&[_], usize); 3] = [
            (&[processors(one_processor)], 0),
            (&[processors(hundred_processors)], MOST_HELPERS),
            (&[processors(hundred_processors), create], 3),
        ];
        for (machine, (symbols, expected)) in machines.iter().enumerate() {
            let engine = on_machine(*backend, symbols);
            on_thread(&format!("machine{number}{machine}"), |name| {
                MADE.store(0, Ordering::Relaxed);
                let kernel = Kernel::launch_on_cpu(add_launch(), Kernel::object(object(), "add"));
                // SAFETY: the functions have the launches' parameters.
                let functions =
                    unsafe { [engine.compile(&sig(BLOCKS), &of_blocks()), engine.compile(&sig(ADD), &kernel)] };
                let [of_nothing, add] = functions.map(Result::unwrap);
                blocks(&of_nothing, 2);
                assert_eq!(threads_of(name), *expected);
                for _ in 0..200 {
                    blocks(&of_nothing, 200);
                }
                assert_eq!(threads_of(name), *expected);
                drop(of_nothing);
                wait_until_none(name);
                MADE.store(0, Ordering::Relaxed);
                thread::scope(|scope| {
                    for _ in 0..4 {
                        scope.spawn(|| (0..10).for_each(|_| adds(&add)));
                    }
                });
            });
        }
    }
}

#[test]
fn signals_end_no_thread() {
    extern "C" fn ignore(_: c_int) {}

    on_thread("signals", |name| {
        // SAFETY: all zeros are a `sigaction` without flags, so that a signal interrupts a wait, and the handler does nothing.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = ignore as *const () as usize;
            assert_eq!(libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut()), 0);
        }
        // SAFETY: the function has the launch's parameters, none.
        let function = unsafe { Engine::new().unwrap().compile(&sig(BLOCKS), &of_blocks()) }.unwrap();
        for _ in 0..20 {
            blocks(&function, 20);
            for task in tasks(name) {
                // SAFETY: the signal has a handler.
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), task, libc::SIGUSR2) };
            }
        }
        assert_eq!(threads_of(name), helpers());
        drop(function);
        wait_until_none(name);
    });
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

/// Launches of one module and of another, which blocks make.
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
        let kernel = Kernel::launch_on_cpu(launch, Kernel::address(function as *const c_void));
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

const CHILD: &str = "TEST_OF_LAUNCHES_IN_A_FORKED_CHILD";

/// In a process of its own, as a fork copies locks that other tests hold.
#[test]
fn a_forked_child_launches() {
    let Some(path) = std::env::var_os(CHILD) else {
        for backend in Backend::ALL {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("add.so");
            library(&path, *backend);
            let done = alone("a_forked_child_launches", CHILD, &path).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        }
        return;
    };
    // SAFETY: the library is one of ours.
    let module = unsafe { Module::load_from_file(Path::new(&path)) }.unwrap();
    // SAFETY: nothing is left of what the library's code has made.
    unsafe { module.unload_when_unused() }.unwrap();
    let of_library = module.get_function("add").unwrap().unwrap();
    // SAFETY: the function has the launch's parameters, none.
    let of_engine = unsafe { Engine::new().unwrap().compile(&sig(BLOCKS), &of_blocks()) }.unwrap();
    let rounds = |of_library: &Function, of_engine: &Function| {
        (0..5).for_each(|_| adds(of_library));
        (0..5).for_each(|_| blocks(of_engine, 100));
    };
    rounds(&of_library, &of_engine);
    for exits in [false, true] {
        // SAFETY: the process has no other thread that holds a lock.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            // a child that hangs is killed
            // SAFETY: it takes a number.
            unsafe { libc::alarm(20) };
            let done = std::panic::catch_unwind(|| {
                rounds(&of_library, &of_engine);
                if !exits {
                    // unloads both
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
                // SAFETY: it takes a number.
                false => unsafe { libc::_exit(status) },
            }
        }
        let mut status = 0;
        // SAFETY: the child is one of this process.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "the child's status is {status:#x}");
    }
    // the parent's threads are as they were
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
            // objects are left, of course
            let done = process.env(crate::live::COUNT_ONLY, "1").output().unwrap();
            assert_eq!(done.status.code(), Some(7), "{}", String::from_utf8_lossy(&done.stdout));
        }
        return;
    };
    // a process that hangs is killed
    // SAFETY: it takes a number.
    unsafe { libc::alarm(20) };
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
        let kernel = Kernel::launch_on_cpu(launch.clone(), Kernel::address(mark as *const c_void));
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
