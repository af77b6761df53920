#![allow(clippy::unwrap_used, clippy::panic)]

use inkwell::AddressSpace;
use inkwell::context::Context;
use inkwell::module::Linkage;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{CodeModel, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine, TargetTriple};

use super::*;
use crate::ir::{self, VerifiedModule};
use crate::lower::{BIND_SYMBOL, LowerError};
use crate::{DLDataType, ScalarType, TensorType};

fn signature() -> Signature {
    Signature::builder("store")
        .param("x", TensorType::new(["n"], DLDataType::FLOAT32))
        .param("v", ScalarType::Float32)
        .build()
        .unwrap()
}

/// `void kernel(float* x, float v, int64_t n) { *x = v; }`, optionally without one parameter.
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
    assert!(
        matches!(&error, EmbedError::Functions(all) if matches!(all[..], [LowerError::Prototype { .. }])),
        "{error}"
    );

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

/// `name(x)` counts in its own state and in the variable `shared`, and has a destructor.
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
        llvm::add_to(&counter(name), &module, &HashMap::new(), Destructors::LeftOut).unwrap();
    }
    module.verify().unwrap();
    let text = module.print_to_string().to_string();
    assert_eq!(text.matches("@shared = weak global").count(), 1, "{text}");
    assert_eq!(text.matches(" = internal global [8 x i8] zeroinitializer").count(), 2, "{text}");
    assert!(!text.contains("dtors"), "{text}");

    let module = context.create_module("other");
    module.add_global(context.i64_type(), None, "shared").set_constant(true);
    let before = module.print_to_string().to_string();
    let error = llvm::add_to(&counter("a"), &module, &HashMap::new(), Destructors::LeftOut).unwrap_err();
    assert!(matches!(&error, llvm::Error::NotAVariable { name } if name == "shared"), "{error}");
    assert_eq!(module.print_to_string().to_string(), before);
}

/// The caller's function `int64_t triple(int64_t n)`.
fn triple<'ctx>(context: &'ctx Context, module: &Module<'ctx>) -> FunctionValue<'ctx> {
    let i64 = context.i64_type();
    let function = module.add_function("triple", i64.fn_type(&[i64.into()], false), Some(Linkage::Internal));
    let builder = context.create_builder();
    builder.position_at_end(context.append_basic_block(function, "entry"));
    let n = function.get_nth_param(0).unwrap().into_int_value();
    let n = builder.build_int_mul(n, i64.const_int(3, false), "").unwrap();
    builder.build_return(Some(&n)).unwrap();
    function
}

fn machine() -> TargetMachine {
    LlvmTarget::initialize_native(&InitializationConfig::default()).unwrap();
    let triple = TargetMachine::get_default_triple();
    let target = LlvmTarget::from_triple(&triple).unwrap();
    target.create_target_machine(&triple, "", "", Default::default(), RelocMode::PIC, CodeModel::Default).unwrap()
}

fn optimise(module: &Module<'_>, machine: &TargetMachine) {
    module.verify().unwrap();
    module.run_passes("default<O2>", machine, PassBuilderOptions::create()).unwrap();
}

#[test]
fn wrappers_of_a_module_share_helpers_which_passes_leave_alone() {
    let context = Context::create();
    let module = context.create_module("mine");
    for i in 0..10 {
        let signature: Signature = format!("f{i}(s: str, n: int64)").parse().unwrap();
        add_wrapper(&module, &signature, Kernel::check_only()).unwrap();
    }
    let machine = machine();
    for optimised in [false, true] {
        if optimised {
            optimise(&module, &machine);
        }
        let names = module.get_functions().filter(|function| function.count_basic_blocks() > 0);
        let bind = names.filter(|f| f.get_name().to_string_lossy().starts_with("ffi_call___tvm_ffi_codegen_bind."));
        assert_eq!(bind.count(), 1);
    }
    let text = module.print_to_string().to_string();
    for name in ["strlen", "memset", "memcpy", "memcmp", "bcmp"] {
        assert!(!text.contains(&format!("@{name}(")), "{name}: {text}");
    }
    assert!(text.contains("optnone"), "{text}");
}

#[test]
fn a_finished_module_outlives_its_context() {
    let machine = machine();
    let owner = std::sync::Arc::new(());
    let signature: Signature = "three(n: int64) -> int64".parse().unwrap();
    let functions = {
        let context = Context::create();
        let module = context.create_module("mine");
        let kernel = triple(&context, &module);
        let added = Wrappers::in_process().function(&signature.clone().with_doc("3n"), kernel).add_to(&module).unwrap();
        optimise(&module, &machine);
        // the helpers are imports: the functions of the module are wrappers and their parts
        let text = module.print_to_string().to_string();
        assert!(text.contains(&format!("@{BIND_SYMBOL}(")), "{text}");
        assert!(!text.lines().any(|line| line.starts_with("define ") && line.contains(BIND_SYMBOL)), "{text}");
        // SAFETY: the kernel has the prototype for the signature.
        unsafe { finish_functions(&module, &machine, [added], std::sync::Arc::clone(&owner)) }.unwrap()
    };
    let three = functions[0].clone();
    drop(functions);
    assert_eq!(three.call((5,)).unwrap().cast::<i64>().unwrap(), 15);
    let error = three.call(("5",)).unwrap_err().to_string();
    assert!(error.contains("expected int64, got str"), "{error}");
    assert_eq!(std::sync::Arc::strong_count(&owner), 2);
    drop(three);
    assert_eq!(std::sync::Arc::strong_count(&owner), 1);

    let context = Context::create();
    let module = context.create_module("mine");
    let missing = Kernel::symbol("nobody_has_this_symbol");
    let added = Wrappers::in_process().function(&signature, missing).add_to(&module).unwrap();
    // SAFETY: it is never called.
    let error = unsafe { finish_functions(&module, &machine, [added], ()) }.unwrap_err().to_string();
    assert!(error.contains("`nobody_has_this_symbol`"), "{error}");
}

#[test]
fn a_module_for_another_machine_is_never_finished() {
    let other = if cfg!(target_arch = "x86_64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" };
    let triple = TargetTriple::create(other);
    LlvmTarget::initialize_all(&InitializationConfig::default());
    let foreign = LlvmTarget::from_triple(&triple)
        .unwrap()
        .create_target_machine(&triple, "", "", Default::default(), RelocMode::PIC, CodeModel::Default)
        .unwrap();
    let here = machine();
    // either the module or the target machine is for the other machine
    for (stated, machine) in [(Some(&triple), &here), (None, &foreign)] {
        let context = Context::create();
        let module = context.create_module("mine");
        stated.into_iter().for_each(|triple| module.set_triple(triple));
        // SAFETY: there is no function.
        let error = unsafe { finish_functions(&module, machine, [], ()) }.map(drop).unwrap_err();
        assert!(matches!(&error, EmbedError::OtherMachine { .. }), "{error}");
        assert!(error.to_string().contains(other), "{error}");
    }
}

/// Uses MCJIT as the caller's own loader.
#[cfg(not(feature = "external-runtime"))]
#[test]
fn a_module_of_the_callers_own_loader_gives_its_state_up() {
    use crate::embed::module_at;
    use tvm_ffi_runtime::{Function, Module as FfiModule, registry};

    /// The engine refers to the context, so the context is dropped later. Nothing else uses either meanwhile.
    struct Loader(#[expect(dead_code, reason = "it is only kept")] inkwell::execution_engine::ExecutionEngine<'static>);
    // SAFETY: it is only dropped, together with the last function.
    unsafe impl Send for Loader {}
    // SAFETY: as above.
    unsafe impl Sync for Loader {}

    let alive = std::sync::Arc::new(());
    let kept = std::sync::Arc::clone(&alive);
    let global = Function::from_packed(move |_| Ok((std::sync::Arc::strong_count(&kept) as i64).into()));
    registry::set_global("embed.llvm.counts", global, true).unwrap();
    LlvmTarget::initialize_native(&InitializationConfig::default()).unwrap();
    let context: &'static Context = Box::leak(Box::new(Context::create()));
    let module = context.create_module("mine");
    let kernel = Kernel::body(|b| {
        let count = b.call_global("embed.llvm.counts", ()).returns(ScalarType::Int64).value();
        b.ret(b.call_import("imported", (count,)).returns(ScalarType::Int64).value());
    });
    let signature: Signature = "f() -> int64".parse().unwrap();
    let added =
        Wrappers::in_process().function(&signature.clone().with_doc("what it does"), kernel).add_to(&module).unwrap();
    let engine = module.create_jit_execution_engine(inkwell::OptimizationLevel::Default).unwrap();
    for (name, address) in crate::embed::runtime_symbols() {
        if let Some(function) = module.get_function(name) {
            engine.add_global_mapping(&function, address.addr());
        }
    }
    let address = |name: &str| {
        // of a variable, too
        let name = std::ffi::CString::new(name).unwrap();
        // SAFETY: the engine is alive.
        let at = unsafe {
            inkwell::llvm_sys::execution_engine::LLVMGetGlobalValueAddress(engine.as_mut_ptr(), name.as_ptr())
        };
        (at != 0).then(|| std::ptr::with_exposed_provenance(at as usize))
    };
    // SAFETY: the addresses are the engine's, which the module owns; the body reads no memory.
    let module = unsafe { module_at([added], address, Loader(engine.clone())) }.unwrap();
    drop(engine);
    let ten = Function::from_packed(|args| Ok((args[0].cast::<i64>()? * 10).into()));
    module.import_module(&FfiModule::new("k", [("imported".to_owned(), ten)])).unwrap();
    assert_eq!(module.function_doc("f", false).unwrap().as_deref(), Some("what it does"));
    let f = module.get_function("f").unwrap().unwrap();
    drop(module);
    for _ in 0..2 {
        assert_eq!(f.call(()).unwrap().cast::<i64>().unwrap(), 20);
    }
    assert!(registry::remove_global("embed.llvm.counts"));
    assert_eq!(std::sync::Arc::strong_count(&alive), 2);
    drop(f);
    assert_eq!(std::sync::Arc::strong_count(&alive), 1);
}

#[test]
fn an_object_has_what_a_library_has() {
    use object::{Object, ObjectSection, ObjectSymbol};

    let machine = machine();
    let context = Context::create();
    let module = context.create_module("mine");
    module.set_triple(&machine.get_triple());
    let signature: Signature = "three(n: int64) -> int64".parse().unwrap();
    let kernel = Kernel::body(|b| {
        b.call_global("somebody.calls", ()).run();
        b.ret(b.arg("n") * 3);
    });
    Wrappers::system("mine_").function(&signature.clone().with_doc("3n"), kernel.clone()).add_to(&module).unwrap();
    // another library in the same module, with lists of its own
    Wrappers::system("other_").function(&signature, kernel).add_to(&module).unwrap();
    optimise(&module, &machine);
    let bytes = llvm::object_of(&module, &machine).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let names: Vec<&str> = file.symbols().filter(|s| s.is_definition()).map(|s| s.name().unwrap()).collect();
    for name in ["mine___tvm_ffi__metadata_three", "mine___tvm_ffi__doc_three", "mine___tvm_ffi__library_ctx"] {
        assert!(
            names.iter().any(|known| known.trim_start_matches('_') == name.trim_start_matches('_')),
            "{name}: {names:?}"
        );
    }
    let size = |wanted: &str| -> u64 {
        let sections = file.sections().filter(|s| s.name().unwrap().starts_with(wanted));
        sections.map(|s| s.size()).sum()
    };
    if file.format() == object::BinaryFormat::Elf {
        assert_eq!((size(".init_array"), size(".fini_array")), (16, 16));
    }
}
