//! The example compiler `dsl-llvm`, as a part of the tests.

#[path = "../../examples/dsl-llvm/codegen.rs"]
mod codegen;
#[path = "../../examples/dsl-llvm/integration.rs"]
mod integration;

use tvm_ffi_codegen::runtime::Module;

use super::{dsl, host};

/// Compiles a program in this process.
pub fn compile(text: &str) -> Module {
    let program = dsl::read("k.dsl", text).unwrap();
    let context = inkwell::context::Context::create();
    integration::compile(&codegen::Unit::new(&context).unwrap(), &program).unwrap()
}
