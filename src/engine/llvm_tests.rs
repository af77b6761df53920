//! Tests the engine with LLVM: loaded code runs on any thread and frees its memory.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use tvm_ffi_runtime::Tensor;

use super::*;
use crate::backend::llvm::tests::axpb;
use crate::backend::{Backend, OptLevel};
use crate::{Kernel, Signature};

const LEVELS: [OptLevel; 3] = [OptLevel::None, OptLevel::Speed, OptLevel::Full];

fn engine(level: OptLevel) -> Engine {
    Engine::builder().backend(Backend::Llvm).opt_level(level).build().unwrap()
}

#[test]
fn a_body_runs_and_rejects() {
    for level in LEVELS {
        let (signature, kernel) = axpb();
        // SAFETY: the body stays within `0..n`.
        let function = unsafe { engine(level).compile(&signature, &kernel) }.unwrap();
        let input: Vec<f32> = (0..1003).map(|i| i as f32).collect();
        let x = Tensor::from_slice(&input, &[1003]).unwrap();
        let y = Tensor::from_slice(&[0f32; 1003], &[1003]).unwrap();
        function.call((2.0, 0.5, &x, &y)).unwrap();
        let expected: Vec<f32> = input.iter().map(|v| 2.0 * v + 0.5).collect();
        assert_eq!(y.to_vec::<f32>().unwrap(), expected);

        let short = Tensor::from_slice(&[0f32; 3], &[3]).unwrap();
        let error = function.call((2.0, 0.5, &x, &short)).unwrap_err().to_string();
        assert!(error.contains("1003 (n, from x.shape[0]), got 3"), "{error}");
        let error = function.call((2.0, 0.5, &x)).unwrap_err().to_string();
        assert!(error.contains('3'), "{error}");
    }
}

#[test]
fn missing_symbols_are_all_named() {
    let signature = Signature::builder("f").build().unwrap();
    let other = Signature::builder("g").build().unwrap();
    let kernels = (Kernel::symbol("no_such_kernel"), Kernel::symbol("nor_this_one"));
    let error = engine(OptLevel::Speed).compile_code([(&signature, &kernels.0), (&other, &kernels.1)]).unwrap_err();
    let EngineError::Unresolved { names, .. } = error else { panic!("{error}") };
    assert_eq!(names, ["no_such_kernel", "nor_this_one"]);
}

#[test]
fn functions_go_from_thread_to_thread() {
    let engine = engine(OptLevel::Speed);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let engine = engine.clone();
            std::thread::spawn(move || {
                let (signature, kernel) = axpb();
                // SAFETY: the body stays within `0..n`.
                (0..10).map(|_| unsafe { engine.compile(&signature, &kernel) }.unwrap()).collect::<Vec<_>>()
            })
        })
        .collect();
    // Compiled on other threads, called here, dropped elsewhere.
    let functions: Vec<_> = threads.into_iter().flat_map(|t| t.join().unwrap()).collect();
    let x = Tensor::from_slice(&[1f32, 2.0], &[2]).unwrap();
    for function in &functions {
        function.call((1.0, 1.0, &x, &x)).unwrap();
    }
    assert_eq!(x.to_vec::<f32>().unwrap(), [41.0, 42.0]);
    std::thread::spawn(move || drop(functions)).join().unwrap();
}

#[test]
fn code_knows_where_it_lies() {
    let (signature, kernel) = axpb();
    let code: Arc<Code> = engine(OptLevel::Speed).compile_code([(&signature, &kernel)]).unwrap();
    let address = code.function(&signature.symbol()).unwrap();
    assert!(code.contains(address));
    assert!(!code.contains((&raw const signature).cast()));
    assert!(code.code_size() > 0);
}
