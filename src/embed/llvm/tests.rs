#![allow(clippy::unwrap_used, clippy::panic)]

use inkwell::AddressSpace;
use inkwell::context::Context;
use inkwell::module::Linkage;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{CodeModel, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine};

use super::*;
use crate::ir::{self, VerifiedModule};
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
    assert!(matches!(error, EmbedError::Prototype { .. }), "{error}");

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

/// `name(x)` counts in state of its own and in the variable `shared`, and has a destructor.
fn counter(name: &str) -> VerifiedModule {
    let mut module = ir::Module::new();
    let (state, shared) = (module.add_state("state", 8, 8), module.add_state("shared", 8, 8));
    module.data[shared].kind = ir::DataKind::Variable;
    let func = module.declare(name, ir::FuncSig::new([ir::Type::I64], None), ir::Linkage::Export);
    let mut b = ir::FunctionBuilder::new(&mut module, func);
    for data in [state, shared] {
        let at = b.data_addr(data, 0);
        b.atomic_add(at, b.param(0));
    }
    b.ret(None);
    b.finish();
    let gone = module.declare("gone", ir::FuncSig::default(), ir::Linkage::Local);
    let mut b = ir::FunctionBuilder::new(&mut module, gone);
    b.ret(None);
    b.finish();
    module.destructors.push(gone);
    ir::verify(module).unwrap()
}

#[test]
fn variables_are_shared_and_state_is_not() {
    let context = Context::create();
    let module = context.create_module("mine");
    for name in ["a", "b"] {
        llvm::add_to(&counter(name), &module, &HashMap::new()).unwrap();
    }
    module.verify().unwrap();
    let text = module.print_to_string().to_string();
    assert_eq!(text.matches("@shared = weak global").count(), 1, "{text}");
    assert_eq!(text.matches(" = internal global [8 x i8] zeroinitializer").count(), 2, "{text}");
    assert!(!text.contains("dtors"), "{text}");

    let module = context.create_module("other");
    module.add_global(context.i64_type(), None, "shared").set_constant(true);
    let before = module.print_to_string().to_string();
    let error = llvm::add_to(&counter("a"), &module, &HashMap::new()).unwrap_err();
    assert!(matches!(&error, llvm::Error::NotAVariable { name } if name == "shared"), "{error}");
    assert_eq!(module.print_to_string().to_string(), before);
}
