//! The module that these tests compile.
#![cfg(any(target_os = "linux", target_os = "macos"))]

use tvm_ffi_codegen::ir::{
    BinaryOp, FuncSig, FunctionBuilder, LocationData, LocationRef, Module, Type, VerifiedModule, verify,
};

/// The file and the function of the lines that `traced` is compiled from.
pub const OUTER: (&str, &str) = ("/demo/model.dsl", "outer");

/// `traced(x)` is `kernel(x)`. It calls the local function `middle`, which adds 1, and subtracts that again. The call
/// of `middle` is line 3 of `outer`, in `model.dsl`. The call of `kernel` is line 7 of `inner`. The sum is line 12 of
/// `add_one`, in `library.dsl`.
pub fn module() -> VerifiedModule {
    let mut m = Module::new();
    let mut location = |file: &str, line, function: &str| -> Option<LocationRef> {
        let (file, function) = (file.to_owned(), function.to_owned());
        Some(m.locations.push(LocationData { file, line, function }))
    };
    let call_middle = location(OUTER.0, 3, OUTER.1);
    let call_kernel = location(OUTER.0, 7, "inner");
    let sum = location("library.dsl", 12, "add_one");

    let sig = FuncSig::new([Type::I64], Some(Type::I64));
    let kernel = m.import("kernel", sig.clone());
    let traced = m.declare("traced", sig.clone(), tvm_ffi_codegen::ir::Linkage::Export);
    let middle = m.declare("middle", sig, tvm_ffi_codegen::ir::Linkage::Local);
    // otherwise LLVM inlines it
    m.functions[middle].cold = true;

    let mut b = FunctionBuilder::new(&mut m, traced);
    let x = b.param(0);
    b.set_location(call_middle);
    let result = b.call(middle, &[x]).unwrap();
    b.set_location(None);
    let result = b.binary_imm(BinaryOp::Sub, result, 1);
    b.ret(Some(result));
    b.finish();

    let mut b = FunctionBuilder::new(&mut m, middle);
    let x = b.param(0);
    b.set_location(call_kernel);
    let result = b.call(kernel, &[x]).unwrap();
    b.set_location(sum);
    let result = b.binary_imm(BinaryOp::Add, result, 1);
    b.ret(Some(result));
    b.finish();
    verify(m).unwrap()
}
