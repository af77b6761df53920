//! Measures the cost of a call with two tensors from Rust: prepared as C would, and with the safe `Function::call`.
//!
//! Prints one line for each: a name, a tab, and the nanoseconds per call of the fastest batch.
//! `cargo xtask bench --only runtime` runs it next to the benchmark of the C functions.

use std::hint::black_box;
use std::time::Instant;

use tvm_ffi_runtime::abi::TVMFFIAny;
use tvm_ffi_runtime::{Any, DLDataType, DLDevice, Error, Function, Result, Tensor, ToAnyView};

/// Calls of one batch.
const CALLS: u32 = 10_000;

fn main() -> Result<()> {
    let batches: u32 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1000);
    // SAFETY: the code reads only the type indices of its arguments, and owns nothing.
    let function = unsafe { Function::from_code(check, ()) };
    let closure = Function::from_packed(|_| Ok(Any::none()));
    let tensor = || Tensor::zeros(&[2, 3], DLDataType::FLOAT32, DLDevice::CPU);
    let (x, y) = (tensor()?, tensor()?);
    let args = [x.to_arg().as_view().as_raw(), y.to_arg().as_view().as_raw()];

    let packed = |function: &Function| {
        let mut result = TVMFFIAny::none();
        // SAFETY: the arguments are views of tensors that are there; the result owns nothing.
        match unsafe { function.call_raw(black_box(&args), &mut result) } {
            0 => Ok(()),
            _ => Err(Error::new("RuntimeError", "the call failed")),
        }
    };
    let safe = |function: &Function| function.call((&x, &y)).map(drop);
    for (name, function) in [("C code", &function), ("a closure", &closure)] {
        print(&format!("call {name} with two tensors from Rust, packed"), batches, || packed(black_box(function)))?;
        print(&format!("call {name} with two tensors, Function::call"), batches, || safe(black_box(function)))?;
    }
    Ok(())
}

fn print(name: &str, batches: u32, mut call: impl FnMut() -> Result<()>) -> Result<()> {
    let mut best = f64::INFINITY;
    for _ in 0..batches {
        let start = Instant::now();
        for _ in 0..CALLS {
            call()?;
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS));
    }
    println!("{name}\t{best:.3}");
    Ok(())
}

/// Takes two tensors and does nothing with them.
unsafe extern "C" fn check(_: *mut std::ffi::c_void, args: *const TVMFFIAny, count: i32, _: *mut TVMFFIAny) -> i32 {
    // SAFETY: the caller passes as many arguments as `count` says.
    let is_tensor = |i: usize| unsafe { (*args.add(i)).type_index } == tvm_ffi_runtime::TypeIndex::TENSOR.0;
    if count == 2 && is_tensor(0) && is_tensor(1) { 0 } else { -1 }
}
