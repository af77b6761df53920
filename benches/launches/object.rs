//! Writes the object of a function that launches a kernel, for `cargo xtask bench --only launches`.

use std::error::Error;
use std::{env, fs};

use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::spec::LaunchedSignature;
use tvm_ffi_codegen::{Backend, Kernel};

const ADD: &str = r#"add(x: Tensor([n], float32, device="cuda"), y: Tensor([n], float32, device="cuda"), z: Tensor([n], float32, device="cuda"))
                     @ launch add grid=ceil_div(n, 128) block=128"#;

/// A kernel that never runs.
const PTX: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 x, .param .u64 y, .param .u64 z, .param .u64 n) { ret; }
";

/// `launches_object BACKEND OBJECT`
fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [backend, object] = &args[..] else { return Err("expected a backend and a file".into()) };
    let backend: Backend = backend.parse()?;
    let LaunchedSignature { signature, launch } = ADD.parse()?;
    let kernel = Kernel::launch(launch, [Image::from_bytes(PTX.as_bytes())?]);
    let library = LibraryBuilder::new().backend(backend).metadata(false).function(&signature, &kernel);
    fs::write(object, library.emit()?.as_bytes())?;
    Ok(())
}
