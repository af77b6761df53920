//! Many wrappers emitted together on several threads. The result doesn't depend on the threads.

use std::num::NonZeroUsize;

use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::runtime::Module;
use tvm_ffi_codegen::{Backend, Engine, Kernel, Signature};

use crate::support::sig;

/// Enough wrappers for three threads to be worthwhile.
const COUNT: usize = 60;

/// Different wrappers: of each three, one has a body with a loop, one a body of straight code, and one a native kernel.
fn wrappers() -> Vec<(Signature, Kernel)> {
    let wrapper = |i: usize| {
        let shape = ["[n]", "[n, 4]", "[m, n, 2]"][i / 3 % 3];
        match i % 3 {
            0 => {
                let body = Kernel::body(move |b| {
                    let end = b.arg("k");
                    let sum = b.fold(0, end, b.i64(i as i64), |i, sum| sum + i);
                    b.ret(sum);
                });
                (sig(&format!("f{i}(x: Optional[Tensor({shape}, float32)], k: int64) -> int64")), body)
            }
            1 => {
                let body = Kernel::body(move |b| b.ret(b.arg("k") + i as i64));
                (sig(&format!("f{i}(x: Optional[Tensor({shape}, int8)], k: int64) -> int64")), body)
            }
            _ => (sig(&format!("f{i}(x: Tensor({shape}, float64))")), Kernel::symbol(format!("kernel_{i}"))),
        }
    };
    (0..COUNT).map(wrapper).collect()
}

#[test]
fn an_object_is_the_same_whatever_the_threads() {
    let wrappers = wrappers();
    for &backend in Backend::ALL {
        let library = wrappers.iter().fold(LibraryBuilder::new().backend(backend), |library, (signature, kernel)| {
            library.function(&signature.clone().with_doc("a doc"), kernel)
        });
        let on = |threads| library.clone().threads(NonZeroUsize::new(threads).unwrap()).emit().unwrap();
        let one = on(1);
        assert_eq!(one.functions().len(), COUNT);
        for threads in [3, 50] {
            assert!(on(threads) == one, "{backend}, {threads} threads");
        }
        assert!(library.emit().unwrap() == one, "{backend}, as many threads as there are");
    }
}

/// The object is the same whether or not the IR is verified.
#[test]
fn an_object_is_the_same_without_the_verifier() {
    let wrappers = wrappers();
    for &backend in Backend::ALL {
        let library = wrappers
            .iter()
            .take(3)
            .fold(LibraryBuilder::new().backend(backend), |library, wrapper| library.function(&wrapper.0, &wrapper.1));
        assert!(library.clone().verifier(false).emit().unwrap() == library.verifier(true).emit().unwrap(), "{backend}");
    }
}

#[test]
fn a_module_of_many_functions_runs() {
    let wrappers = wrappers();
    for &backend in Backend::ALL {
        for threads in [1, 3] {
            let engine =
                Engine::builder().backend(backend).threads(NonZeroUsize::new(threads).unwrap()).verifier(false);
            let engine = engine.build().unwrap();
            let pairs = || wrappers.iter().enumerate().filter(|(i, _)| i % 3 < 2);
            // SAFETY: the bodies touch no memory.
            let module: Module =
                unsafe { engine.compile_module(pairs().map(|(_, (signature, kernel))| (signature, kernel))) }.unwrap();
            for (i, (signature, _)) in pairs() {
                let function = module.get_function(signature.name()).unwrap().unwrap();
                let result = i64::try_from(function.call(((), 5)).unwrap()).unwrap();
                let expected = if i % 3 == 0 { i as i64 + 10 } else { i as i64 + 5 };
                assert_eq!(result, expected, "{backend}, {threads} threads, {signature}");
            }
        }
    }
}
