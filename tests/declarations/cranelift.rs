//! Declarations with Cranelift's types.

use std::collections::HashMap;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, ArgumentExtension, InstBuilder, MemFlagsData, Value, types};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module};

use tvm_ffi_codegen::backend::cranelift::{IsaOptions, host_isa, isa_for};
use tvm_ffi_codegen::runtime::abi::TVMFFISafeCallType;
use tvm_ffi_codegen::{Kernel, ParamPart, ParamSource, embed};

use super::{Passed, all, check_scale, parts, scale};

fn passed(param: &ir::AbiParam) -> Passed {
    let extension = match param.extension {
        ArgumentExtension::None => None,
        ArgumentExtension::Sext => Some(true),
        ArgumentExtension::Uext => Some(false),
    };
    match param.value_type {
        types::F32 => Passed::Float(32),
        types::F64 => Passed::Float(64),
        ty => Passed::Int(ty.bits(), extension),
    }
}

/// The expected type on a target with 64-bit registers. `extends_32` says whether its C ABI also extends 32-bit
/// integers.
fn expected(by_c: Passed, extends_32: bool) -> Passed {
    match by_c {
        Passed::Pointer => Passed::Int(64, None),
        Passed::Int(32, _) if !extends_32 => Passed::Int(32, None),
        other => other,
    }
}

#[test]
fn signatures_are_those_of_the_prototypes() {
    let isas: Vec<(OwnedTargetIsa, bool)> =
        [("x86_64-unknown-linux-gnu", false), ("riscv64gc-unknown-linux-gnu", true)]
            .map(|(triple, extends)| (isa_for(&triple.parse().unwrap(), &IsaOptions::default()).unwrap(), extends))
            .into();
    for (signature, kernel, prototype) in all() {
        for (isa, extends_32) in &isas {
            let found = embed::cranelift::kernel_signature(&**isa, &signature, &kernel);
            let prototype = match &prototype {
                Ok(prototype) => prototype,
                Err(why) => {
                    assert_eq!(&found.unwrap_err().to_string(), why);
                    continue;
                }
            };
            let (result, params) = parts(prototype);
            let found = found.unwrap();
            assert_eq!(found.call_conv, isa.default_call_conv());
            let expected = |by_c| expected(by_c, *extends_32);
            let wanted: Vec<Passed> = params.iter().map(|(c_type, _)| expected(Passed::by_c(c_type))).collect();
            assert_eq!(found.params.iter().map(passed).collect::<Vec<_>>(), wanted, "{prototype}");
            let wanted: Vec<Passed> = result.into_iter().map(expected).collect();
            assert_eq!(found.returns.iter().map(passed).collect::<Vec<_>>(), wanted, "{prototype}");
        }
    }
}

/// `x[i] = x[i] * f` for all elements. Like a compiler, it finds its values by their sources.
pub fn define_scale(module: &mut JITModule, kernel: &Kernel) -> FuncId {
    let signature = scale();
    let id = embed::cranelift::declare_kernel(module, Linkage::Local, &signature, kernel).unwrap();
    let mut context = module.make_context();
    context.func.signature = module.declarations().get_function_decl(id).signature.clone();
    let mut frontend = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut context.func, &mut frontend);
    let [entry, head, body, exit] = std::array::from_fn(|_| b.create_block());
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let (mut tensors, mut scalars, mut dims) = (HashMap::new(), HashMap::new(), HashMap::new());
    let values: Vec<Value> = b.block_params(entry).to_vec();
    for (param, value) in kernel.parameters(&signature).unwrap().into_iter().zip(values) {
        match param.source {
            ParamSource::Argument(name, ParamPart::Data) => tensors.insert(name, value),
            ParamSource::Argument(name, ParamPart::Value) => scalars.insert(name, value),
            ParamSource::DimVar { name, .. } => dims.insert(name, value),
            other => panic!("{other}"),
        };
    }
    let factor = b.ins().fdemote(types::F32, scalars["f"]);
    let zero = b.ins().iconst(types::I64, 0);
    b.ins().jump(head, &[zero.into()]);
    let i = b.append_block_param(head, types::I64);
    b.switch_to_block(head);
    let more = b.ins().icmp(IntCC::SignedLessThan, i, dims["n"]);
    b.ins().brif(more, body, &[], exit, &[]);
    b.switch_to_block(body);
    let offset = b.ins().ishl_imm_u(i, 2);
    let at = b.ins().iadd(tensors["x"], offset);
    let element = b.ins().load(types::F32, MemFlagsData::trusted(), at, 0);
    let product = b.ins().fmul(element, factor);
    b.ins().store(MemFlagsData::trusted(), product, at, 0);
    let next = b.ins().iadd_imm_s(i, 1);
    b.ins().jump(head, &[next.into()]);
    b.switch_to_block(exit);
    b.ins().return_(&[]);
    b.seal_all_blocks();
    b.finalize(module.target_config());
    module.define_function(id, &mut context).unwrap();
    id
}

pub fn own_module() -> JITModule {
    let isa = host_isa(&IsaOptions::default()).unwrap();
    let mut builder = JITBuilder::with_isa(isa, cranelift_module::default_libcall_names());
    builder.symbols(embed::runtime_symbols());
    JITModule::new(builder)
}

#[test]
fn a_kernel_that_was_declared_runs() {
    for bound in [false, true] {
        let mut module = own_module();
        let kernel = Kernel::symbol("scale_kernel");
        let id = define_scale(&mut module, &kernel);
        let target = if bound { embed::cranelift::KernelSource::from(id) } else { kernel.into() };
        let wrapper = embed::cranelift::add_wrapper(&mut module, &scale(), target).unwrap();
        module.finalize_definitions().unwrap();
        let address = module.get_finalized_function(wrapper);
        // SAFETY: wrappers are of this type.
        check_scale(unsafe { std::mem::transmute::<*const u8, TVMFFISafeCallType>(address) });
        // SAFETY: neither its code nor its data is used any more.
        unsafe { module.free_memory() };
    }
}
