//! Declarations with LLVM's types.

use std::collections::HashMap;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::module::{Linkage, Module};
use inkwell::targets::{InitializationConfig, Target};
use inkwell::types::BasicTypeEnum;
use inkwell::values::FunctionValue;
use inkwell::{IntPredicate, OptimizationLevel};

use tvm_ffi_codegen::runtime::abi::TVMFFISafeCallType;
use tvm_ffi_codegen::{Kernel, ParamPart, ParamSource, embed};

use super::{Passed, all, check_scale, parts, scale};

fn passed(function: FunctionValue<'_>, at: AttributeLoc, ty: BasicTypeEnum<'_>) -> Passed {
    let has = |name| function.get_enum_attribute(at, Attribute::get_named_enum_kind_id(name)).is_some();
    match ty {
        BasicTypeEnum::FloatType(ty) => Passed::Float(ty.get_bit_width()),
        BasicTypeEnum::PointerType(_) => Passed::Pointer,
        BasicTypeEnum::IntType(ty) => {
            let extension = match (has("signext"), has("zeroext")) {
                (true, false) => Some(true),
                (false, true) => Some(false),
                (false, false) => None,
                (true, true) => panic!("both extensions"),
            };
            Passed::Int(ty.get_bit_width(), extension)
        }
        other => panic!("{other}"),
    }
}

#[test]
fn types_are_those_of_the_prototypes() {
    let context = Context::create();
    let module = context.create_module("mine");
    for (signature, kernel, prototype) in all() {
        let ty = embed::llvm::kernel_type(&context, &signature, &kernel);
        let declared = embed::llvm::declare_kernel(&module, None, &signature, &kernel);
        let prototype = match prototype {
            Ok(prototype) => prototype,
            Err(why) => {
                assert_eq!(ty.unwrap_err().to_string(), why);
                assert_eq!(declared.unwrap_err().to_string(), why);
                continue;
            }
        };
        let (result, params) = parts(&prototype);
        let function = declared.unwrap();
        assert_eq!(function.get_type(), ty.unwrap());
        let names: Vec<_> = function.get_param_iter().map(|p| p.get_name().to_string_lossy().into_owned()).collect();
        assert_eq!(names, params.iter().map(|(_, name)| *name).collect::<Vec<_>>(), "{prototype}");
        let found: Vec<_> = (0u32..)
            .zip(function.get_param_iter())
            .map(|(i, param)| passed(function, AttributeLoc::Param(i), param.get_type()))
            .collect();
        assert_eq!(found, params.iter().map(|(c_type, _)| Passed::by_c(c_type)).collect::<Vec<_>>(), "{prototype}");
        let found = function.get_type().get_return_type().map(|ty| passed(function, AttributeLoc::Return, ty));
        assert_eq!(found, result, "{prototype}");
        // SAFETY: nothing refers to the function.
        unsafe { function.delete() };
    }
}

/// `x[i] = x[i] * f` for all elements. Like a compiler, it finds its values by their sources.
pub fn define_scale<'ctx>(context: &'ctx Context, module: &Module<'ctx>, kernel: &Kernel) -> FunctionValue<'ctx> {
    let signature = scale();
    let function = embed::llvm::declare_kernel(module, Some(Linkage::Internal), &signature, kernel).unwrap();
    let (mut tensors, mut scalars, mut dims) = (HashMap::new(), HashMap::new(), HashMap::new());
    for (param, value) in kernel.parameters(&signature).unwrap().into_iter().zip(function.get_param_iter()) {
        match param.source {
            ParamSource::Argument(name, ParamPart::Data) => drop(tensors.insert(name, value.into_pointer_value())),
            ParamSource::Argument(name, ParamPart::Value) => drop(scalars.insert(name, value.into_float_value())),
            ParamSource::DimVar { name, .. } => drop(dims.insert(name, value.into_int_value())),
            other => panic!("{other}"),
        }
    }
    let [entry, head, body, exit] = ["entry", "head", "body", "exit"].map(|n| context.append_basic_block(function, n));
    let b = context.create_builder();
    let (f32_type, i64_type) = (context.f32_type(), context.i64_type());
    b.position_at_end(entry);
    let factor = b.build_float_trunc(scalars["f"], f32_type, "factor").unwrap();
    b.build_unconditional_branch(head).unwrap();
    b.position_at_end(head);
    let phi = b.build_phi(i64_type, "i").unwrap();
    let i = phi.as_basic_value().into_int_value();
    let more = b.build_int_compare(IntPredicate::SLT, i, dims["n"], "more").unwrap();
    b.build_conditional_branch(more, body, exit).unwrap();
    b.position_at_end(body);
    // SAFETY: `i` is below the number of elements.
    let at = unsafe { b.build_gep(f32_type, tensors["x"], &[i], "at") }.unwrap();
    let element = b.build_load(f32_type, at, "element").unwrap().into_float_value();
    let product = b.build_float_mul(element, factor, "product").unwrap();
    b.build_store(at, product).unwrap();
    let next = b.build_int_add(i, i64_type.const_int(1, false), "next").unwrap();
    b.build_unconditional_branch(head).unwrap();
    phi.add_incoming(&[(&i64_type.const_zero(), entry), (&next, body)]);
    b.position_at_end(exit);
    b.build_return(None).unwrap();
    function
}

#[test]
fn a_kernel_that_was_declared_runs() {
    Target::initialize_native(&InitializationConfig::default()).unwrap();
    for bound in [false, true] {
        let context = Context::create();
        let module = context.create_module("mine");
        let kernel = Kernel::symbol("scale_kernel");
        let function = define_scale(&context, &module, &kernel);
        let target = if bound { embed::llvm::KernelSource::from(function) } else { kernel.into() };
        embed::llvm::add_wrapper(&module, &scale(), target).unwrap();
        module.verify().unwrap();
        let engine = module.create_jit_execution_engine(OptimizationLevel::None).unwrap();
        for (name, address) in embed::runtime_symbols() {
            if let Some(import) = module.get_function(name) {
                engine.add_global_mapping(&import, address.expose_provenance());
            }
        }
        let address = engine.get_function_address(&scale().symbol()).unwrap();
        let address = std::ptr::with_exposed_provenance::<u8>(address);
        // SAFETY: wrappers are of this type.
        check_scale(unsafe { std::mem::transmute::<*const u8, TVMFFISafeCallType>(address) });
    }
}
