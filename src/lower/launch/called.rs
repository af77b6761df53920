//! A C function that is called with stated parameters, in place of those of its convention: the values of a launch's parameters, without the launch.

use std::collections::HashSet;

use super::emitter::{Emitter, Exits, Inputs, Prepared, PreparedCode};
use super::spec::{Check, LaunchSpec};
use crate::ir::{Block, FunctionBuilder, Type, Value};
use crate::lower::convention::c_type::CType;
use crate::lower::convention::param::{KernelParam, ParamPart, ParamSource};
use crate::lower::convention::{Convention, KernelReturn, params};
use crate::lower::unit::Pool;
use crate::spec::{Dim, LaunchArg, ScalarType, Signature};

/// The values of stated parameters, and the block that takes the code of an error about one of them.
pub(in crate::lower) struct Arguments {
    pub values: Vec<Value>,
    pub failed: Block,
    /// The code, in that block.
    pub code: Value,
}

impl LaunchSpec {
    /// All mistakes of stated parameters, by the signature.
    pub(in crate::lower) fn call_problems(&self, signature: &Signature) -> Vec<String> {
        let mut check = Check::new(self, signature);
        check.params();
        for arg in self.launch.stated_args().unwrap_or_default() {
            let what = match arg {
                LaunchArg::TensorMap(_) => "a tensor map",
                LaunchArg::Scratch { .. } => "scratch memory",
                LaunchArg::Struct { .. } => "a struct",
                _ => continue,
            };
            check.problem(format!("has {what} among its args, which launches alone pass"));
        }
        check.into_problems()
    }

    /// The C parameters: the stated ones, and the place for what the function writes beside its status.
    pub(in crate::lower) fn called_params(&self, signature: &Signature, returns: KernelReturn) -> Vec<KernelParam> {
        let flat = params::params(signature, Convention::Flat, returns);
        let mut taken = HashSet::new();
        let mut all = Vec::new();
        for (number, arg) in self.launch.stated_args().unwrap_or_default().iter().enumerate() {
            let stated = |name: String, c_type| (name, c_type, ParamSource::Stated(arg.to_string()));
            let unnamed = || format!("arg{number}");
            let (name, c_type, source) = match arg {
                LaunchArg::Param(name) => match flat.iter().find(|param| param.is_value_of(name)) {
                    Some(param) => (param.name.clone(), param.c_type, param.source.clone()),
                    None => stated(name.clone(), CType::Pointer("void")),
                },
                LaunchArg::Cast(name, ty) => stated(name.clone(), CType::Scalar(*ty)),
                LaunchArg::Int(Dim::Symbol(name), ty) => stated(name.clone(), CType::Scalar(*ty)),
                LaunchArg::Int(_, ty) | LaunchArg::Float(_, ty) => stated(unnamed(), CType::Scalar(*ty)),
                LaunchArg::Stride(name, d, ty) => stated(format!("{name}_stride{d}"), CType::Scalar(*ty)),
                LaunchArg::DeviceId(name) => stated(format!("{name}_device_id"), CType::Scalar(ScalarType::Int32)),
                _ => stated(unnamed(), CType::Pointer("void")),
            };
            all.push(KernelParam { name: params::own_name(name, &mut taken), c_type, source });
        }
        let written = flat.into_iter().filter(is_written);
        all.extend(written.map(|param| KernelParam { name: params::own_name(param.name, &mut taken), ..param }));
        all
    }

    /// The tensors whose devices' numbers are passed.
    pub(in crate::lower) fn tensors_with_device_id(&self) -> impl Iterator<Item = &str> {
        self.launch.stated_args().unwrap_or_default().iter().filter_map(|arg| match arg {
            LaunchArg::DeviceId(name) => Some(name.as_str()),
            _ => None,
        })
    }
}

/// Whether a parameter is the place that a function writes its result to.
pub(in crate::lower) fn is_written(param: &KernelParam) -> bool {
    matches!(param.source, ParamSource::Result(_, ParamPart::Value))
}

/// Readies a call with stated parameters. `called` is the text of the signature, and `name` that of the function.
pub(in crate::lower) fn prepare<'a>(
    pool: &mut Pool,
    spec: &'a LaunchSpec,
    signature: &'a Signature,
    called: &str,
    name: &str,
) -> Prepared<'a> {
    let caller = pool.constants.text(&format!("Cannot call kernel `{name}` when calling: `{called}`"));
    Prepared { launch: &spec.launch, signature, code: PreparedCode::Called, caller }
}

/// Emits the values of stated parameters. Fails where a value isn't there, which it names.
pub(in crate::lower) fn arguments(
    b: &mut FunctionBuilder<'_>,
    pool: &mut Pool,
    prepared: &Prepared<'_>,
    inputs: &Inputs<'_>,
) -> Result<Arguments, String> {
    let failed = b.cold_block();
    let code = b.block_param(failed, Type::I32);
    // the code goes on behind the values
    let done = b.current();
    let mut emitter = Emitter::new(b, pool, prepared, inputs, Exits { done, failed });
    let args = prepared.launch.stated_args().unwrap_or_default();
    let values = args.iter().filter_map(|arg| emitter.value(arg)).collect();
    emitter.missing.map_or(Ok(Arguments { values, failed, code }), Err)
}
