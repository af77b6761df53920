//! Calls and compilations on several threads. The long stress test is elsewhere.

use std::ffi::c_void;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use tvm_ffi_codegen::Engine;
use tvm_ffi_codegen::runtime::{Any, Function, Tensor, registry};

use crate::support::kernels;
use crate::support::sig;

fn compile(engine: &Engine, signature: &str, body: &str) -> Function {
    // SAFETY: the bodies keep to the shapes that their signatures state.
    unsafe { engine.compile(&sig(signature), &kernels::body(body).unwrap()).unwrap() }
}

#[test]
fn threads_compile_call_and_drop() {
    let engine = Engine::new().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let engine = engine.clone();
            scope.spawn(move || {
                for round in 0..8 {
                    let name = format!("t{thread}_{round}");
                    let signature = format!("{name}(x: Tensor([n], float32), y: Tensor([n], float32))");
                    let f = compile(&engine, &signature, "add_one");
                    let x = Tensor::from_slice(&[thread as f32, round as f32], &[2]).unwrap();
                    let y = Tensor::from_slice(&[0f32; 2], &[2]).unwrap();
                    f.call((&x, &y)).unwrap();
                    assert_eq!(y.to_vec::<f32>().unwrap(), [thread as f32 + 1.0, round as f32 + 1.0]);
                    let error = f.call((&x, round)).unwrap_err();
                    assert!(error.message().contains(&name), "{error}");
                }
            });
        }
    });
}

#[test]
fn one_function_on_many_threads_keeps_errors_apart() {
    let engine = Engine::new().unwrap();
    let f = compile(&engine, "ensure(a: int64) -> int64", "ensure");
    drop(engine);
    std::thread::scope(|scope| {
        for thread in 1..5i64 {
            let f = f.clone();
            scope.spawn(move || {
                for i in 1..200i64 {
                    let n = thread * 1000 + i;
                    assert_eq!(f.call((n,)).unwrap().cast::<i64>().unwrap(), 2 * n);
                    assert_eq!(f.call((-n,)).unwrap_err().message(), format!("a has to be positive, got {}", -n));
                }
            });
        }
        drop(f);
    });
}

#[test]
fn a_function_may_be_dropped_on_another_thread() {
    let engine = Engine::new().unwrap();
    for _ in 0..8 {
        let f = compile(&engine, "sum(x: Tensor([n], float64)) -> float64", "sum");
        let x = Tensor::from_slice(&[1.0, 2.0], &[2]).unwrap();
        let result = std::thread::spawn(move || f.call((&x,)).unwrap().cast::<f64>().unwrap()).join().unwrap();
        assert_eq!(result, 3.0);
    }
}

/// All threads get the same state, even if they request it simultaneously and the global function returns different
/// pointers.
#[test]
fn all_threads_have_one_state() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let give = Function::from_packed(|_| {
        let pointer: *mut c_void = std::ptr::without_provenance_mut(CALLS.fetch_add(1, Ordering::Relaxed) + 1);
        // SAFETY: the address is never dereferenced.
        Ok(unsafe { Any::from_opaque_ptr(pointer) })
    });
    registry::set_global("test.state_of_many", give, true).unwrap();
    let engine = Engine::new().unwrap();
    for _ in 0..20 {
        let f = compile(&engine, "f(s: EnvState(\"test.state_of_many\")) -> handle", "state");
        let start = Barrier::new(8);
        let call = || {
            start.wait();
            f.call(()).unwrap().cast::<*mut c_void>().unwrap().addr()
        };
        let states: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(call)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(states.iter().all(|state| *state == states[0] && *state != 0), "{states:?}");
        let calls = CALLS.load(Ordering::Relaxed);
        assert_eq!(f.call(()).unwrap().cast::<*mut c_void>().unwrap().addr(), states[0]);
        assert_eq!(CALLS.load(Ordering::Relaxed), calls);
    }
}
