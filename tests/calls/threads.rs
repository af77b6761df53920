//! Many threads use one library.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use tvm_ffi_codegen::runtime::abi::{TVMFFIByteArray, TVMFFIObjectHandle, TVMFFISafeCallType};
use tvm_ffi_codegen::runtime::registry::{remove_global, set_global};
use tvm_ffi_codegen::runtime::{Any, Function, capi};
use tvm_ffi_codegen::{Backend, Engine, Kernel, ScalarType};

use crate::support::recording::real::TVMFFIFunctionGetGlobal;
use crate::support::sig;

const THREADS: usize = 8;
const ROUNDS: i64 = 200;

const BACKENDS: &[Backend] = &[
    Backend::Cranelift,
    #[cfg(feature = "_llvm")]
    Backend::Llvm,
];

/// Counts the look-ups of this test's names.
static LOOK_UPS: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn counted_get_global(name: *const TVMFFIByteArray, out: *mut TVMFFIObjectHandle) -> i32 {
    // SAFETY: as the caller promises.
    unsafe {
        if (*name).as_slice().starts_with(b"calls.threads.") {
            LOOK_UPS.fetch_add(1, Ordering::Relaxed);
            // let other threads run in between
            std::thread::yield_now();
        }
        TVMFFIFunctionGetGlobal(name, out)
    }
}

#[test]
fn each_function_is_looked_up_once() {
    const CALLEES: usize = 4;
    let name = |i: usize| format!("calls.threads.{i}");
    for i in 0..CALLEES {
        let add = Function::from_packed(move |args| Ok(Any::from(args[0].cast::<i64>()? + i as i64)));
        set_global(&name(i), add, false).unwrap();
    }
    let symbols = capi::symbols().iter().map(|(name, address)| match *name {
        "TVMFFIFunctionGetGlobal" => (*name, counted_get_global as *const u8),
        _ => (*name, address.as_ptr().cast()),
    });
    let symbols: Vec<_> = symbols.collect();
    let signature = sig("f(n: int64) -> int64");
    let kernel = Kernel::body(move |b| {
        let n = (0..CALLEES).fold(b.arg("n"), |n, i| b.call_global(&name(i), (n,)).returns(ScalarType::Int64).value());
        b.ret(n);
    });
    for &backend in BACKENDS {
        let builder = Engine::builder().backend(backend);
        // SAFETY: the functions are the runtime's, with the same prototypes.
        let engine = unsafe { builder.external_runtime(symbols.iter().copied()) }.build().unwrap();
        let code = engine.compile_code([(&signature, &kernel)]).unwrap();
        // SAFETY: nothing runs any more when the code is dropped, and the runtime stays.
        unsafe { code.run_destructors_on_drop() };
        let address = code.function(&signature.symbol()).unwrap();
        // SAFETY: every wrapper has that type, and the code outlives the function.
        let function = unsafe {
            let safe_call = std::mem::transmute::<*const u8, TVMFFISafeCallType>(address);
            Function::from_extern_c(std::ptr::null_mut(), safe_call, None)
        };
        LOOK_UPS.store(0, Ordering::Relaxed);
        let all_at_once = Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for thread in 0..THREADS as i64 {
                let (function, all_at_once) = (&function, &all_at_once);
                scope.spawn(move || {
                    all_at_once.wait();
                    for round in 0..ROUNDS {
                        let n = 1000 * thread + round;
                        assert_eq!(function.call((n,)).unwrap().cast::<i64>().unwrap(), n + 6);
                    }
                });
            }
        });
        assert_eq!(LOOK_UPS.load(Ordering::Relaxed), CALLEES, "{backend:?}");
    }
    (0..CALLEES).for_each(|i| assert!(remove_global(&format!("calls.threads.{i}"))));
}
