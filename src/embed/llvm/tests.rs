#![allow(clippy::unwrap_used, clippy::panic)]

use inkwell::AddressSpace;
use inkwell::context::Context;
use inkwell::module::Linkage;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{CodeModel, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine};

use super::*;
use crate::{DLDataType, ScalarType, TensorType};

fn signature() -> Signature {
    Signature::builder("store")
        .param("x", TensorType::new(["n"], DLDataType::FLOAT32))
        .param("v", ScalarType::Float32)
        .build()
        .unwrap()
}

/// `void kernel(float* x, float v, int64_t n) { *x = v; }`, or with a parameter less.
fn kernel<'ctx>(context: &'ctx Context, module: &Module<'ctx>, complete: bool) -> FunctionValue<'ctx> {
    let ptr = context.ptr_type(AddressSpace::default());
    let all = [ptr.into(), context.f32_type().into(), context.i64_type().into()];
    let params = if complete { &all[..] } else { &all[..2] };
    let ty = context.void_type().fn_type(params, false);
    let function = module.add_function("my_kernel", ty, Some(Linkage::Internal));
    let builder = context.create_builder();
    builder.position_at_end(context.append_basic_block(function, "entry"));
    let at = function.get_nth_param(0).unwrap().into_pointer_value();
    builder.build_store(at, function.get_nth_param(1).unwrap()).unwrap();
    builder.build_return(None).unwrap();
    function
}

#[test]
fn the_kernel_is_inlined_into_its_wrapper() {
    let context = Context::create();
    let module = context.create_module("mine");
    let kernel = kernel(&context, &module, true);
    let wrapper = add_wrapper(&module, &signature(), kernel).unwrap();
    assert_eq!(wrapper.get_name().to_str(), Ok("__tvm_ffi_store"));
    module.verify().unwrap();

    LlvmTarget::initialize_native(&InitializationConfig::default()).unwrap();
    let triple = TargetMachine::get_default_triple();
    let machine = LlvmTarget::from_triple(&triple)
        .unwrap()
        .create_target_machine(&triple, "", "", Default::default(), RelocMode::PIC, CodeModel::Default)
        .unwrap();
    module.run_passes("default<O2>", &machine, PassBuilderOptions::create()).unwrap();
    let text = module.print_to_string().to_string();
    assert!(!text.contains("@my_kernel"), "{text}");
    assert!(text.contains("store float"), "{text}");
}

#[test]
fn a_request_that_fails_leaves_the_module_as_it_was() {
    let context = Context::create();
    let module = context.create_module("mine");
    let wrong = kernel(&context, &module, false);
    let before = module.print_to_string().to_string();

    let error = add_wrapper(&module, &signature(), wrong).unwrap_err();
    assert!(matches!(error, EmbedError::Codegen(CodegenError::Llvm(llvm::Error::SignatureConflict { .. }))), "{error}");
    let text = error.to_string();
    assert!(text.contains("expected `void (ptr, float, i64)`, found `void (ptr, float)`"), "{text}");

    let elsewhere = context.create_module("other");
    let foreign = kernel(&context, &elsewhere, true);
    let error = add_wrapper(&module, &signature(), foreign).unwrap_err();
    assert!(matches!(error, EmbedError::Codegen(CodegenError::Llvm(llvm::Error::OtherModule { .. }))), "{error}");
    assert_eq!(module.print_to_string().to_string(), before);

    let right = Kernel::check_only();
    add_wrapper(&module, &signature(), right.clone()).unwrap();
    let before = module.print_to_string().to_string();
    let error = add_wrapper(&module, &signature(), right).unwrap_err();
    assert!(matches!(error, EmbedError::Codegen(CodegenError::Llvm(llvm::Error::Duplicate { .. }))), "{error}");
    assert_eq!(module.print_to_string().to_string(), before);
}
