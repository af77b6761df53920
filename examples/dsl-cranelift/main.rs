//! A compiler of a small kernel language with Cranelift, whose kernels are functions of TVM FFI.
//!
//! ```text
//! dsl-cranelift           compiles the kernels in this process, then to a library, and runs both
//! dsl-cranelift LIBRARY   writes the library, which `examples/dsl/run.py` runs
//! ```
//!
//! All that is here because of TVM FFI is in `integration.rs`. The front end is in `examples/dsl`, the code generator
//! in `codegen.rs`.

mod codegen;
#[path = "../dsl/mod.rs"]
mod dsl;
#[path = "../dsl/host.rs"]
mod host;
mod integration;

use tvm_ffi_codegen::runtime::Module;

fn main() -> host::Result {
    let program = dsl::read("kernels.dsl", include_str!("../dsl/kernels.dsl"))?;
    if let Some(library) = std::env::args().nth(1) {
        return integration::write_library(&program, library.as_ref());
    }
    println!("compiled in this process");
    host::run(&integration::compile(&program)?)?;

    let folder = tempfile::tempdir()?;
    let library = folder.path().join("kernels.so");
    integration::write_library(&program, &library)?;
    println!("from a library");
    // SAFETY: the library is of the kernels that were compiled above.
    host::run(&unsafe { Module::load_from_file(library)? })
}
