//! The cost of a call through the packed ABI, successful and failing.
//!
//! `cargo bench --bench call` prints criterion's figures and then a table of medians.

mod support;

use std::hint::black_box;

use criterion::Criterion;
use support::{Result, Samples, add_one_body, add_one_signature};
use tvm_ffi_codegen::runtime::abi::{DLDevice, TVMFFIAny};
use tvm_ffi_codegen::runtime::{AnyView, Function, Tensor, ToAnyView, error::take_raised};
use tvm_ffi_codegen::{DLDataType, Engine, Kernel};

const ROWS: [&str; 7] = [
    "an empty function, packed",
    "check only, packed, Tensor",
    "check only, packed, DLTensor*",
    "check only, Function::call",
    "add_one of 1 element, packed",
    "wrong shape, packed, error taken",
    "wrong shape, Function::call",
];

fn main() -> Result<()> {
    let mut criterion = Criterion::default().configure_from_args();
    let samples = Samples::default();
    let engine = Engine::new()?;
    let signature = add_one_signature()?;
    // SAFETY: no kernel at all, and a body that stays within `0..n`, the shape that both tensors have.
    let (check, add_one) =
        unsafe { (engine.compile(&signature, &Kernel::check_only())?, engine.compile(&signature, &add_one_body())?) };
    // SAFETY: it accesses no memory.
    let empty = unsafe { Function::from_code(empty, ()) };

    let tensor = |n: i64| Tensor::zeros(&[n], DLDataType::FLOAT32, DLDevice::CPU);
    let (x, y, longer) = (tensor(1)?, tensor(1)?, tensor(2)?);
    let raw = |arg: &dyn ToAnyView| arg.to_arg().as_view().as_raw();
    let tensors = [raw(&x), raw(&y)];
    // SAFETY: both tensors live to the end.
    let pointers = [&x, &y].map(|tensor| unsafe { AnyView::from_dl_tensor(tensor.as_dl_tensor()) }.as_raw());
    let wrong = [raw(&x), raw(&longer)];

    samples.batch(&mut criterion, ROWS[0], || call(&empty, &tensors));
    samples.batch(&mut criterion, ROWS[1], || call(&check, &tensors));
    samples.batch(&mut criterion, ROWS[2], || call(&check, &pointers));
    samples.batch(&mut criterion, ROWS[3], || check.call((&x, &y)).is_ok());
    samples.batch(&mut criterion, ROWS[4], || call(&add_one, &tensors));
    samples.batch(&mut criterion, ROWS[5], || (call(&check, &wrong), take_raised()));
    samples.batch(&mut criterion, ROWS[6], || check.call((&x, &longer)).is_err());
    criterion.final_summary();
    if !support::is_smoke() {
        println!("\nmedians, nanoseconds a call, of add_one(x: Tensor([n], float32), y: Tensor([n], float32))\n");
        println!("| call | ns |\n|---|---|");
        for row in ROWS {
            println!("| {row} | {:.1} |", samples.median(row).unwrap_or_default());
        }
    }
    Ok(())
}

/// A call as C makes it: the argument array is ready, the result None.
fn call(function: &Function, args: &[TVMFFIAny; 2]) -> i32 {
    let mut result = TVMFFIAny::none();
    // SAFETY: the arguments are views of tensors that live in `main`; the result owns nothing.
    unsafe { function.call_raw(black_box(args), &mut result) }
}

unsafe extern "C" fn empty(_: *mut std::ffi::c_void, _: *const TVMFFIAny, _: i32, _: *mut TVMFFIAny) -> i32 {
    0
}
