//! Running code: what an unwinder and `gdb` see of it.
#![cfg(any(target_os = "linux", target_os = "macos"))]

use std::backtrace::Backtrace;
use std::process::Command;
use std::sync::Mutex;

use tvm_ffi_codegen::Backend;
use tvm_ffi_codegen::backend::OptLevel;
use tvm_ffi_codegen::engine::{Code, Jit};

use super::program;
use std::sync::Arc;

/// The stack as the kernel has seen it.
static SEEN: Mutex<String> = Mutex::new(String::new());
/// Held by a test that reads what its kernel has seen.
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
    // not a tail call
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
