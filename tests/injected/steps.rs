//! The parts of scenarios: signatures, kernels, objects and libraries.

use std::path::Path;

use tvm_ffi_codegen::artifact::{LibraryBuilder, Linker, ObjectFile, Triple};
use tvm_ffi_codegen::runtime::{Function, Module, Tensor};
use tvm_ffi_codegen::{DLDataType, Engine, Kernel, Signature, TensorType};

use crate::Result;

/// The name of the function in libraries.
pub const NAME: &str = "add_one";

pub fn signature(name: &str) -> Result<Signature> {
    let tensor = || TensorType::new(["n"], DLDataType::FLOAT32);
    Ok(Signature::builder(name).param("x", tensor()).param("y", tensor()).build()?)
}

/// `y = x + add`.
pub fn kernel(add: f32) -> Kernel {
    Kernel::body(move |b| {
        let (x, y) = (b.tensor("x"), b.tensor("y"));
        b.for_range(0, b.dim("n"), |i| y.store([i], x.load([i]) + add));
    })
}

pub fn compile(engine: &Engine, add: f32) -> Result<Function> {
    // SAFETY: the body stays within `0..n`, the shape that both tensors have once the wrapper has checked them.
    Ok(unsafe { engine.compile(&signature(NAME)?, &kernel(add))? })
}

/// The panics of `cranelift-bforest` and `bumpalo` without memory.
const OUT_OF_MEMORY: [&str; 2] = ["panic: unhandled out-of-memory error", "panic: out of memory"];

/// Calls the function rightly and wrongly, and panics where a result is wrong.
pub fn check(function: &Function, add: f32) -> Result {
    let values: Vec<f32> = (0..16).map(|i| i as f32).collect();
    let (x, y) = (Tensor::from_slice(&values, &[16])?, Tensor::from_slice(&[0.0f32; 16], &[16])?);
    function.call((&x, &y))?;
    let sums: Vec<f32> = values.iter().map(|x| x + add).collect();
    assert_eq!(y.to_vec::<f32>()?, sums);
    let error = function.call((&x,)).unwrap_err();
    match error.kind() {
        "MemoryError" => Err(error.into()),
        // some collections of Cranelift panic without memory, and the engine reports that
        "RuntimeError" if OUT_OF_MEMORY.iter().any(|panic| error.message().contains(panic)) => Err(error.into()),
        kind => {
            assert_eq!(kind, "TypeError", "{error}");
            Ok(())
        }
    }
}

/// The object of a library with several functions.
pub fn object(functions: usize) -> Result<ObjectFile> {
    let mut builder = LibraryBuilder::new();
    for number in 0..functions {
        let name = if number == 0 { NAME.to_owned() } else { format!("{NAME}_{number}") };
        builder = builder.function(&signature(&name)?, &kernel(number as f32 + 1.0));
    }
    Ok(builder.emit()?)
}

pub fn linker() -> Result<Linker> {
    Ok(Linker::new(Triple::host()).object(object(1)?.into_bytes()))
}

/// Loads a library, calls its function, and unloads it.
pub fn load(path: &Path) -> Result {
    // SAFETY: the library is one of these scenarios', and nothing uses it after this function.
    let module = unsafe {
        let module = Module::load_from_file(path)?;
        module.unload_when_unused()?;
        module
    };
    let function = module.get_function(NAME)?.ok_or("the library lacks its function")?;
    check(&function, 1.0)
}
