//! The example compiler `dsl-cranelift`, as a part of the tests.

#[path = "../../examples/dsl-cranelift/codegen.rs"]
mod codegen;
#[path = "../../examples/dsl-cranelift/integration.rs"]
mod integration;

use tvm_ffi_codegen::runtime::Module;

use super::{dsl, host};

/// Compiles a program in this process.
pub fn compile(text: &str) -> Module {
    let program = dsl::read("k.dsl", text).unwrap();
    integration::compile(&program).unwrap()
}
