//! Runs the library on the bundled runtime: `run saxpy.so`. The executable has to export the runtime's symbols to
//! libraries. In your own program, put `println!("cargo::rustc-link-arg-bins=-rdynamic");` into the build script, as
//! this crate does.

use std::error::Error;

use tvm_ffi_codegen::runtime::{Module, Tensor};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: run LIBRARY")?;
    // SAFETY: emit.rs has made the library.
    let module = unsafe { Module::load_from_file(std::path::absolute(path)?)? };
    let saxpy = module.get_function("saxpy")?.ok_or("there is no saxpy")?;

    let values: Vec<f32> = (0..1_000_000).map(|i| i as f32).collect();
    let x = Tensor::from_slice(&values, &[1_000_000])?;
    let y = Tensor::from_slice(&vec![1f32; 1_000_000], &[1_000_000])?;
    saxpy.call((3.0, &x, &y))?;
    let right = y.to_vec::<f32>()?.iter().zip(&values).all(|(y, x)| *y == 3.0 * x + 1.0);
    println!("every element is right: {}", if right { "True" } else { "False" });

    if let Err(error) = saxpy.call((3.0, &x, &Tensor::from_slice(&[1f32; 5], &[5])?)) {
        println!("{}", error.message());
    }
    Ok(())
}
