use crate::{
    codegen,
    dsl::program::{self, Program},
    host::Result,
};
use cranelift_codegen::ir::{AbiParam, types};
use cranelift_module::Module as _;
use std::path::Path;
use tvm_ffi_codegen::{
    runtime::{self, Function},
    *,
};

fn tensor(t: &program::Tensor) -> Result<TensorType> {
    let dims = |d: &[program::Expr]| {
        d.iter().map(|d| d.to_string().parse::<Dim>()).collect::<std::result::Result<Vec<_>, _>>()
    };
    let dtype: DLDataType = t.element.name().parse()?;
    let ty = TensorType::new(dims(&t.shape)?, dtype);
    Ok(match &t.strides {
        Some(s) => ty.with_strides(dims(s)?),
        None => ty,
    })
}
fn ty(t: &program::Type) -> Result<ParamType> {
    Ok(match t {
        program::Type::Scalar(s) => s.name().parse::<ScalarType>()?.into(),
        program::Type::Str => ParamType::Str,
        program::Type::Tensor(t) => tensor(t)?.into(),
        program::Type::Optional(t) => ParamType::from(tensor(t)?).optional(),
    })
}
fn sig(k: &program::Kernel) -> Result<Signature> {
    let mut b = Signature::builder(&k.head.name);
    for p in &k.head.params {
        b = b.param(&p.name, ty(&p.ty)?);
    }
    if let Some(r) = &k.head.result {
        b = b.returns(ty(r)?);
    }
    for c in &k.head.constraints {
        let op = match c.comparison.sign() {
            "==" => CompareOp::Eq,
            _ => CompareOp::Ge,
        };
        b = b.constraint(c.left.to_string().parse::<Dim>()?, op, c.right.to_string().parse::<Dim>()?);
    }
    Ok(b.build()?)
}
pub fn compile(program: &Program) -> Result<runtime::Module> {
    let mut jit = cranelift_jit::JITBuilder::new(cranelift_module::default_libcall_names())?;
    jit.symbols(embed::runtime_symbols());
    let mut m = cranelift_jit::JITModule::new(jit);
    let mut ids = vec![];
    for k in &program.kernels {
        if !k.outside.is_empty() {
            continue;
        }
        let s = sig(k)?;
        let mut cs = m.make_signature();
        let mut names = vec![];
        for p in &k.head.params {
            names.push(p.name.clone());
            match &p.ty {
                program::Type::Scalar(s) => cs.params.push(AbiParam::new(match s {
                    program::Scalar::Int64 => types::I64,
                    program::Scalar::Float32 => types::F32,
                    _ => types::F64,
                })),
                program::Type::Str => {
                    cs.params.extend([AbiParam::new(types::I64); 2]);
                    names.push(format!("{}.size", p.name));
                }
                _ => cs.params.push(AbiParam::new(types::I64)),
            }
        }
        if let Some(program::Type::Tensor(_)) = k.head.result {
            cs.params.push(AbiParam::new(types::I64));
            names.push("result".into());
        }
        for n in s.symbols() {
            cs.params.push(AbiParam::new(types::I64));
            names.push(n.to_string());
        }
        if let Some(program::Type::Scalar(_)) = k.head.result {
            cs.params.push(AbiParam::new(types::I64));
            names.push("result".into());
        }
        cs.returns.push(AbiParam::new(types::I32));
        let id = codegen::define(&mut m, k, cs, &names, &[])?;
        let w = embed::add_wrapper(&mut m, &s, embed::Target::Function(id, Some(KernelReturn::Status)))?;
        ids.push((k.head.name.clone(), w));
    }
    m.finalize_definitions()?;
    let mut b = runtime::Module::builder("dsl");
    for (n, id) in ids {
        let f =
            unsafe { std::mem::transmute::<*const u8, runtime::abi::TVMFFISafeCallType>(m.get_finalized_function(id)) };
        b = b.function(&n, unsafe { Function::from_code(f, ()) });
    }
    Ok(b.build())
}
pub fn write_library(_: &Program, _: &Path) -> Result {
    Ok(())
}
