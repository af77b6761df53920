//! A process without free memory: the operations that raise an error instead of ending the process.

use std::process::Command;

use tvm_ffi_codegen::runtime::{Array, DLDataType, DLDevice, Error, Function, Tensor, registry};
use tvm_ffi_codegen::{Backend, Engine, EngineError, Kernel};

use crate::faults::{with_allocations, with_ever_more_allocations};
use crate::support::sig;

/// The environment variable that contains the backend's name for the child process.
const BACKEND: &str = "WITHOUT_MEMORY_BACKEND";

#[test]
fn calls_and_compilations_raise_errors_without_memory() {
    for backend in Backend::ALL {
        let out = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "without_memory::process", "--nocapture", "--test-threads=1"])
            .env(BACKEND, backend.to_string().to_lowercase())
            .env("TVM_FFI_BACKTRACE", "0")
            .output()
            .unwrap();
        assert!(out.status.success(), "{backend}: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr));
    }
}

/// Runs in the child process of the test above; otherwise it does nothing.
#[test]
fn process() {
    let Ok(backend) = std::env::var(BACKEND) else { return };
    let fails = Function::from_packed(|_| Err(Error::new("ValueError", "a message of many letters")));
    registry::set_global("without_memory.fails", fails, false).unwrap();
    let signature =
        sig("f(x: Tensor([n, m], float32), y: Tensor([m, n], float32), a: Optional[Array[int64]], k: int64) -> int64");
    let kernel = Kernel::body(|b| {
        let t = b.alloc_tensor([b.dim("n")], DLDataType::INT64, DLDevice::CPU);
        t.store([b.i64(0)], b.arg("k"));
        b.try_(|| b.call_global("without_memory.fails", ("a text for the heap",)).run(), |_| {});
        b.ret(t.load([b.i64(0)]) + b.dim("n"));
    });
    let engine = Engine::builder().backend(backend.parse().unwrap()).build().unwrap();
    // SAFETY: the body stays within the tensor that it allocates.
    let compile = || unsafe { engine.compile(&signature, &kernel) };
    let f = compile().unwrap();
    let tensor = |shape: &[i64]| Tensor::from_slice(&[1f32; 6], shape).unwrap();
    let (x, y) = (tensor(&[2, 3]), tensor(&[3, 2]));
    let (array, wrong): (Array, Array) = ([1i64, 2].into_iter().collect(), ["q"].into_iter().collect());
    // Call each once with enough memory, so everything that is created on first use exists.
    assert_eq!(f.call((&x, &y, &array, 4)).unwrap().cast::<i64>().unwrap(), 6);
    assert_eq!(f.call((&x, &x, &array, 4)).unwrap_err().kind(), "ValueError");
    assert_eq!(f.call((&x, &y, &wrong, 4)).unwrap_err().kind(), "TypeError");

    let is_memory_error = |error: &Error| error.kind() == "MemoryError";
    let mut allocations = 0;
    allocations += with_ever_more_allocations(|| match f.call((&x, &y, &array, 4)) {
        Ok(value) => assert!(value.cast::<i64>().is_ok_and(|value| value == 6)),
        Err(error) => assert!(is_memory_error(&error)),
    });
    allocations += with_ever_more_allocations(|| {
        let error = f.call((&x, &x, &array, 4)).unwrap_err();
        assert!(error.kind() == "ValueError" || is_memory_error(&error));
    });
    allocations += with_ever_more_allocations(|| {
        let error = f.call((&x, &y, &wrong, 4)).unwrap_err();
        assert!(error.kind() == "TypeError" || is_memory_error(&error));
    });
    assert!(allocations >= 10, "{allocations}");
    assert!(with_allocations(0, || f.call((&x, &y, &array, 4))).0.is_err_and(|error| is_memory_error(&error)));

    let (compiled, _) = with_allocations(0, compile);
    assert!(matches!(compiled, Err(EngineError::Memory { .. })));
    drop(compiled);
    let (compiled, _) = with_allocations(0, || engine.compile_code([(&signature, &kernel)]));
    assert!(matches!(compiled, Err(EngineError::Memory { .. })));
    drop(compiled);
    assert!(compile().is_ok());
}
