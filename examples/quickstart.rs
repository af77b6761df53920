//! The main use in one file. A signature and a body become a checked function, which runs on real data and rejects
//! wrong calls with errors.

use std::error::Error;

use tvm_ffi_codegen::runtime::abi::{DLDevice, DLTensor};
use tvm_ffi_codegen::runtime::{AnyView, CallArgs, Function, Tensor};
use tvm_ffi_codegen::{DLDataType, DLDeviceType, Engine, Kernel, Signature, TensorType};

const N: usize = 1_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    // A compiler states a signature, and a body (or the name of a kernel).
    let signature = Signature::builder("add_one")
        .param("x", TensorType::new(["n"], DLDataType::FLOAT32))
        .param("y", TensorType::new(["n"], DLDataType::FLOAT32))
        .build()?;
    let kernel = Kernel::body(|b| {
        let (x, y) = (b.tensor("x"), b.tensor("y"));
        b.for_range(0, b.dim("n"), |i| y.store([i], x.load([i]) + 1.0));
    });

    let engine = Engine::new()?;
    let start = std::time::Instant::now();
    // SAFETY: the body stays within `0..n`, the shape that both tensors have once the wrapper has checked them.
    let add_one = unsafe { engine.compile(&signature, &kernel)? };
    eprintln!("compiled in {:.0} microseconds", start.elapsed().as_secs_f64() * 1e6);
    println!("compiled {signature}");

    // A million floats through the packed ABI.
    let input: Vec<f32> = (0..N).map(|i| i as f32 * 0.5).collect();
    let x = Tensor::from_slice(&input, &[N as i64])?;
    let y = Tensor::zeros(&[N as i64], DLDataType::FLOAT32, DLDevice::CPU)?;
    add_one.call((&x, &y))?;
    let output = y.to_vec::<f32>()?;
    let wrong = input.iter().zip(&output).filter(|(x, y)| **x + 1.0 != **y).count();
    if wrong > 0 {
        return Err(format!("{wrong} of {N} elements are wrong").into());
    }
    println!("ran it on {N} floats: every element is right");

    // Five wrong calls: each returns an error.
    let half = Tensor::zeros(&[N as i64 / 2], DLDataType::FLOAT32, DLDevice::CPU)?;
    let doubles = Tensor::zeros(&[N as i64], DLDataType::FLOAT64, DLDevice::CPU)?;
    let mut no_data: DLTensor = *y.as_dl_tensor();
    no_data.data = std::ptr::null_mut();
    assert_eq!(no_data.device.device_type, DLDeviceType::CPU);
    println!("five wrong calls:");
    expect_error(&add_one, "arity", (&x,))?;
    expect_error(&add_one, "type", (&x, 3))?;
    expect_error(&add_one, "dtype", (&x, &doubles))?;
    expect_error(&add_one, "shape", (&x, &half))?;
    // SAFETY: the tensor is filled, and the memory that it points to lives longer. The wrapper detects that its data is
    // NULL.
    let no_data = unsafe { AnyView::from_dl_tensor(&no_data) };
    expect_error(&add_one, "NULL data", (&x, no_data))?;
    Ok(())
}

fn expect_error(function: &Function, what: &str, args: impl CallArgs) -> Result<(), Box<dyn Error>> {
    match function.call(args) {
        Err(error) => println!("  {what}: {error}"),
        Ok(_) => return Err(format!("the call with the wrong {what} was accepted").into()),
    }
    Ok(())
}
