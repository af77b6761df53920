//! Running code: the reports of an unwinder and `gdb` on it.
#![cfg(any(target_os = "linux", target_os = "macos"))]

use std::backtrace::Backtrace;
use std::process::Command;
use std::sync::{Arc, Mutex};

use tvm_ffi_codegen::Backend;
use tvm_ffi_codegen::backend::OptLevel;
use tvm_ffi_codegen::engine::{Code, Jit};

use super::program;

/// The stack that the kernel has captured.
static SEEN: Mutex<String> = Mutex::new(String::new());
/// Held by a test while it reads what its kernel has captured.
static TURN: Mutex<()> = Mutex::new(());

extern "C" fn looks_around(x: i64) -> i64 {
    *SEEN.lock().unwrap() = format!("{:#}", Backtrace::force_capture());
    x
}

fn load(backend: Backend, level: OptLevel, kernel: extern "C" fn(i64) -> i64) -> Arc<Code> {
    let jit = Jit::builder().backend(backend).opt_level(level).symbol("kernel", kernel as *const u8).build().unwrap();
    jit.load(&program::module()).unwrap()
}

#[inline(never)]
fn calls_traced(code: &Code, x: i64) -> i64 {
    let traced = code.function("traced").unwrap();
    // SAFETY: the function has this signature, and the code is alive.
    let traced: extern "C" fn(i64) -> i64 = unsafe { std::mem::transmute(traced) };
    // prevents a tail call
    std::hint::black_box(traced(x))
}

#[test]
fn an_unwinder_walks_through() {
    let _turn = TURN.lock().unwrap();
    for &backend in Backend::ALL {
        for level in [OptLevel::None, OptLevel::Speed, OptLevel::Full] {
            let code = load(backend, level, looks_around);
            assert_eq!(calls_traced(&code, 41), 41);
            let stack = SEEN.lock().unwrap().clone();
            assert!(stack.contains("looks_around"), "{backend} {level:?}: {stack}");
            assert!(stack.contains("calls_traced"), "{backend} {level:?}: {stack}");
        }
    }
}

extern "C" fn fails(x: i64) -> i64 {
    *SEEN.lock().unwrap() = tvm_ffi_codegen::runtime::Error::new("ValueError", "here").backtrace();
    x
}

/// A process reads the setting for whole stacks only once, so this needs its own process.
#[test]
fn an_errors_backtrace_names_the_lines() {
    const ALONE: &str = "TVM_FFI_CODEGEN_TEST_BACKTRACE";
    if std::env::var_os(ALONE).is_none() {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "debug_info::running::an_errors_backtrace_names_the_lines"])
            .envs([(ALONE, "1"), ("TVM_FFI_BACKTRACE", "1")])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        return;
    }
    for &backend in Backend::ALL {
        let code = load(backend, OptLevel::Full, fails);
        assert_eq!(calls_traced(&code, 41), 41);
        let stack = SEEN.lock().unwrap().clone();
        let lines = ["  File \"/demo/model.dsl\", line 7, in inner", "  File \"/demo/model.dsl\", line 3, in outer"];
        let place = stack.lines().position(|line| line == lines[0]).unwrap_or_else(|| panic!("{backend}: {stack}"));
        assert_eq!(stack.lines().nth(place + 1), Some(lines[1]), "{backend}: {stack}");
        assert!(stack.contains("calls_traced"), "{backend}: {stack}");
    }
}

/// Where `gdb` stops: it finds this name even without Rust's debug information.
#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn debug_info_stops_here(x: i64) -> i64 {
    std::hint::black_box(x)
}

/// The program that `gdb` runs in the test below.
#[test]
fn a_kernel_is_called() {
    for &backend in Backend::ALL {
        let code = load(backend, OptLevel::Full, debug_info_stops_here);
        assert_eq!(calls_traced(&code, 41), 41);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn gdb_shows_the_lines_beneath_a_kernel() {
    let missing = Command::new("gdb").arg("--version").output().is_err();
    if missing && std::env::var_os("CI").is_none() {
        eprintln!("skipped: there is no gdb");
        return;
    }
    let stops = Backend::ALL.iter().flat_map(|_| ["-ex", "backtrace", "-ex", "continue"]);
    let output = Command::new("gdb")
        .args(["-batch", "-nx", "-iex", "set debuginfod enabled off", "-ex", "set width 0"])
        .args(["-ex", "break debug_info_stops_here", "-ex", "run"])
        .args(stops)
        .arg("--args")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "debug_info::running::a_kernel_is_called"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let all = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    // a backtrace's frames are lines that begin with a number, from the innermost outwards
    let mut stacks: Vec<Vec<&str>> = Vec::new();
    for line in text.lines().filter(|line| line.starts_with('#')) {
        if line.starts_with("#0 ") {
            stacks.push(Vec::new());
        }
        stacks.last_mut().unwrap().push(line);
    }
    assert_eq!(stacks.len(), Backend::ALL.len(), "{all}");
    for stack in stacks {
        assert!(stack[0].contains("stops_here"), "{all}");
        assert!(stack[1].contains(" in inner ") && stack[1].ends_with(" at /demo/model.dsl:7"), "{all}");
        assert!(stack[2].contains(" in outer ") && stack[2].ends_with(" at /demo/model.dsl:3"), "{all}");
        assert!(stack[3].contains("calls_traced"), "{all}");
        assert!(stack[4].contains("a_kernel_is_called"), "{all}");
        // the test's own thread starts in the C library
        assert!(stack.last().unwrap().contains("clone"), "{all}");
    }
    assert!(text.contains("exited normally"), "{all}");
}
