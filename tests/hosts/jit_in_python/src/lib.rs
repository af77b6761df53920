//! A compiler in a shared library that Python loads with `ctypes`. `cargo xtask test --only runtime-modes` builds it on
//! each runtime.

use std::ffi::{CStr, CString, c_char};

use tvm_ffi_codegen::runtime::{Function, Tensor, registry};
use tvm_ffi_codegen::{Engine, Kernel, Signature};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// `divide(x, by)`: divides the elements in place, and returns their number.
fn compile() -> Result<Function> {
    let signature: Signature = "divide(x: Tensor([n], float64), by: int64) -> int64".parse()?;
    let kernel = Kernel::body(|b| {
        let (x, by) = (b.tensor("x"), b.arg("by"));
        b.if_(by.eq(0), || b.raise("ValueError", "by is {}", [by]));
        b.for_range(0, b.dim("n"), |i| x.store([i], x.load([i]) / by.cast(tvm_ffi_codegen::ScalarType::Float64)));
        b.ret(b.dim("n"));
    });
    // SAFETY: the body stays within `x`.
    Ok(unsafe { Engine::new()?.compile(&signature, &kernel)? })
}

/// Compiles the function and calls it here, with a correct and a wrong argument.
fn run() -> Result<String> {
    let divide = compile()?;
    let x = Tensor::from_slice(&[2.0f64, 4.0], &[2])?;
    let count = divide.call((&x, 2))?.cast::<i64>()?;
    let zero = divide.call((&x, 0)).err().map(|error| error.to_string());
    Ok(format!("{count} {:?} {}", x.to_vec::<f64>()?, zero.unwrap_or_default()))
}

/// Registers it as a global function.
fn define(name: &str) -> Result<String> {
    registry::set_global(name, compile()?, true)?;
    Ok(format!("{name} is defined"))
}

/// A C string that is never freed.
fn text(result: Result<String>) -> *const c_char {
    let text = result.unwrap_or_else(|error| format!("error: {error}"));
    CString::new(text).unwrap_or_default().into_raw()
}

/// Returns the text of [`run`].
#[unsafe(no_mangle)]
pub extern "C" fn jit_run() -> *const c_char {
    text(run())
}

/// Returns the text of [`define`].
///
/// # Safety
/// The name ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jit_define(name: *const c_char) -> *const c_char {
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    text(name.to_str().map_err(Into::into).and_then(define))
}
