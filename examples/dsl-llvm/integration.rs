use crate::{
    codegen,
    dsl::program::{self, Program},
    host::Result,
};
use inkwell::{OptimizationLevel, context::Context, types::BasicMetadataTypeEnum};
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
    let context: &'static Context = Box::leak(Box::new(Context::create()));
    let m = context.create_module("dsl");
    let (ptr, i64t) = (context.ptr_type(Default::default()), context.i64_type());
    let mut ids = vec![];
    for k in &program.kernels {
        if !k.outside.is_empty() {
            continue;
        }
        let s = sig(k)?;
        let mut cs: Vec<BasicMetadataTypeEnum> = vec![];
        let mut names = vec![];
        for p in &k.head.params {
            names.push(p.name.clone());
            match &p.ty {
                program::Type::Scalar(s) => cs.push(match s {
                    program::Scalar::Int64 => i64t.into(),
                    program::Scalar::Float32 => context.f32_type().into(),
                    _ => context.f64_type().into(),
                }),
                program::Type::Str => {
                    cs.extend([BasicMetadataTypeEnum::from(ptr), i64t.into()]);
                    names.push(format!("{}.size", p.name));
                }
                _ => cs.push(ptr.into()),
            }
        }
        if let Some(program::Type::Tensor(_)) = k.head.result {
            cs.push(ptr.into());
            names.push("result".into());
        }
        for n in s.symbols() {
            cs.push(i64t.into());
            names.push(n.to_string());
        }
        if let Some(program::Type::Scalar(_)) = k.head.result {
            cs.push(ptr.into());
            names.push("result".into());
        }
        let f = codegen::define(&m, k, context.i32_type().fn_type(&cs, false), &names, &[])?;
        embed::llvm::add_wrapper(&m, &s, embed::llvm::Target::Function(f, Some(KernelReturn::Status)))?;
        ids.push((k.head.name.clone(), s.symbol()));
    }
    m.verify().map_err(|e| e.to_string())?;
    inkwell::targets::Target::initialize_native(&Default::default())?;
    let ee = m.create_jit_execution_engine(OptimizationLevel::None).map_err(|e| e.to_string())?;
    for (name, at) in embed::runtime_symbols() {
        if let Some(f) = m.get_function(name) {
            ee.add_global_mapping(&f, at as usize);
        }
    }
    let mut b = runtime::Module::builder("dsl");
    for (n, sym) in ids {
        let a = ee.get_function_address(&sym)?;
        let f = unsafe { std::mem::transmute::<usize, runtime::abi::TVMFFISafeCallType>(a) };
        b = b.function(&n, unsafe { Function::from_code(f, ()) });
    }
    std::mem::forget(ee);
    std::mem::forget(m);
    Ok(b.build())
}
pub fn write_library(_: &Program, _: &Path) -> Result {
    Ok(())
}
