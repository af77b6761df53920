//! A compiler's last step: emits a library, `emit saxpy.so`. Any TVM FFI host loads it: run.py, run.c and run.rs do.

use std::error::Error;

use tvm_ffi_codegen::artifact::{LibraryBuilder, Linker, Triple};
use tvm_ffi_codegen::{Kernel, Signature};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: emit LIBRARY")?;
    let saxpy: Signature = "saxpy(a: float32, x: Tensor([n], float32), y: Tensor([n], float32))".parse()?;
    let saxpy = saxpy.with_doc("y += a * x");
    let body = Kernel::body(|b| {
        let (a, x, y) = (b.arg("a"), b.tensor("x"), b.tensor("y"));
        b.for_range(0, b.dim("n"), |i| y.store([i], a * x.load([i]) + y.load([i])));
    });
    let object = LibraryBuilder::new().function(&saxpy, &body).emit()?;
    Linker::new(Triple::host()).object(object.into_bytes()).link(&path)?;
    println!("{path}: {saxpy}");
    Ok(())
}
