//! Writes the object of functions that call, for `cargo xtask bench --only calls-out`.

use std::error::Error;
use std::{env, fs};

use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::{Backend, Kernel, ScalarType, Signature};

/// `calls_object BACKEND OBJECT`
fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [backend, object] = &args[..] else { return Err("expected a backend and a file".into()) };
    let backend: Backend = backend.parse()?;
    let signature = |text: &str| text.parse::<Signature>();
    let by_symbol = Kernel::body(|b| {
        let last =
            b.fold(0, b.arg("n"), b.i64(0), |_, x| b.call_symbol("callee", (x,)).returns(ScalarType::Int64).value());
        b.ret(last);
    });
    let by_global = Kernel::body(|b| {
        let last = b.fold(0, b.arg("n"), b.i64(0), |_, x| {
            b.call_global("bench.callee", (x,)).returns(ScalarType::Int64).value()
        });
        b.ret(last);
    });
    let library = LibraryBuilder::new()
        .backend(backend)
        .metadata(false)
        .function(&signature("callee(x: int64) -> int64")?, &Kernel::body(|b| b.ret(b.arg("x") + 1)))
        .function(&signature("by_symbol(n: int64) -> int64")?, &by_symbol)
        .function(&signature("by_global(n: int64) -> int64")?, &by_global);
    fs::write(object, library.emit()?.as_bytes())?;
    Ok(())
}
