//! A process that has another LLVM loaded before ours is used, with all of its symbols global. This is a separate test
//! program, because a loaded library stays for the whole process.
#![cfg(all(target_os = "linux", feature = "_llvm"))]
#![allow(clippy::unwrap_used)]

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use tvm_ffi_codegen::runtime::Tensor;
use tvm_ffi_codegen::{Backend, DLDataType, Engine, Kernel, Signature, TensorType};

#[test]
fn another_llvm_does_not_clash() {
    let ours = if cfg!(feature = "llvm19-1") { 19 } else { 22 };
    let names = (14..=22)
        .rev()
        .filter(|v| *v != ours)
        .flat_map(|v| [format!("libLLVM.so.{v}.1"), format!("libLLVM-{v}.so.1"), format!("libLLVM-{v}.so")]);
    let mut others = Vec::new();
    for name in names {
        // SAFETY: LLVM's libraries may be loaded anywhere; none is unloaded.
        if let Ok(library) = unsafe { Library::open(Some(&name), RTLD_NOW | RTLD_GLOBAL) } {
            println!("loaded {name}");
            others.push(std::mem::ManuallyDrop::new(library));
        }
    }
    if others.is_empty() {
        println!("skipped: no other LLVM is installed");
        return;
    }
    // It also has its own state, so create some.
    type CreateContext = unsafe extern "C" fn() -> *mut std::ffi::c_void;
    // SAFETY: `LLVMContextRef LLVMContextCreate(void)` in every version.
    let context = unsafe { (*others[0].get::<CreateContext>(b"LLVMContextCreate").unwrap())() };
    assert!(!context.is_null());

    let signature = Signature::builder("add_one")
        .param("x", TensorType::new(["n"], DLDataType::FLOAT32))
        .param("y", TensorType::new(["n"], DLDataType::FLOAT32))
        .build()
        .unwrap();
    let kernel = Kernel::body(|b| {
        let (x, y) = (b.tensor("x"), b.tensor("y"));
        b.for_range(0, b.dim("n"), |i| y.store([i], x.load([i]) + 1.0));
    });
    let engine = Engine::builder().backend(Backend::Llvm).build().unwrap();
    // SAFETY: the body stays within `0..n`.
    let add_one = unsafe { engine.compile(&signature, &kernel) }.unwrap();
    let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3]).unwrap();
    let y = Tensor::from_slice(&[0.0f32; 3], &[3]).unwrap();
    add_one.call((&x, &y)).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [2.0, 3.0, 4.0]);
    assert!(add_one.call((&x, 3)).is_err());
}
