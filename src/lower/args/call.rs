//! Calls of C functions with stated parameters, in place of those of their convention.

use std::collections::HashSet;

use super::check::{Check, Receiver};
use super::shape::c_type;
use super::values::{Inputs, Values};
use crate::ir::{Block, FunctionBuilder, MemFlags, StructLayout, Type, Value};
use crate::lower::convention::param::{KernelParam, ParamPart, ParamSource};
use crate::lower::convention::{Convention, KernelReturn, params};
use crate::lower::problem::ArgProblem;
use crate::lower::unit::ModulePool;
use crate::spec::{Dim, KernelArg, Signature};

/// A call with stated parameters.
pub(in crate::lower) struct Call<'a> {
    pub args: &'a [KernelArg],
    pub signature: &'a Signature,
    /// The offset of `Cannot call kernel ...` in the constant pool, a C string.
    pub caller: u32,
}

/// The values of stated parameters, and the block that handles an error about one of them.
pub(in crate::lower) struct Arguments {
    pub values: Vec<Value>,
    pub failed: Block,
    /// The error's code, a parameter of that block.
    pub code: Value,
}

/// All errors of stated parameters, given the signature.
pub(in crate::lower) fn problems(args: &[KernelArg], signature: &Signature) -> Vec<ArgProblem> {
    let mut check = Check::new(signature, Receiver::Call);
    check.sizes(Some(args));
    check.problems
}

/// The C parameters: the stated ones, then the address for the result that the function writes in addition to its
/// status.
pub(in crate::lower) fn c_params(args: &[KernelArg], signature: &Signature, returns: KernelReturn) -> Vec<KernelParam> {
    let flat = params::params(signature, Convention::Flat, returns);
    let mut taken = HashSet::new();
    let mut all = Vec::new();
    for (position, arg) in args.iter().enumerate() {
        let of_flat = match arg {
            KernelArg::Param(name) => flat.iter().find(|param| param.is_value_of(name)),
            _ => None,
        };
        let name = match arg {
            KernelArg::Param(name) => of_flat.map_or(name, |param| &param.name).clone(),
            KernelArg::Cast(name, _) => name.clone(),
            // a part of a tensor has brackets, which aren't valid in C names
            KernelArg::Int(Dim::Var(name), _) => name.replace(['.', '['], "_").replace(']', ""),
            KernelArg::Stride(name, d, _) => format!("{name}_stride{d}"),
            KernelArg::DeviceId(name) => format!("{name}_device_id"),
            _ => format!("arg{position}"),
        };
        let source = of_flat.map_or_else(|| ParamSource::Stated(arg.to_string()), |param| param.source.clone());
        let name = params::own_name(name, &mut taken);
        all.push(KernelParam { name, c_type: c_type(arg, &flat), source, position });
    }
    for param in flat.into_iter().filter(is_written) {
        all.push(KernelParam { name: params::own_name(param.name, &mut taken), position: all.len(), ..param });
    }
    all
}

/// Whether a parameter is the address that a function writes its result to.
pub(in crate::lower) fn is_written(param: &KernelParam) -> bool {
    matches!(param.source, ParamSource::Result(_, ParamPart::Value))
}

/// Emits the values of stated parameters. Fails if a value is missing; the error names it.
pub(in crate::lower) fn arguments(
    b: &mut FunctionBuilder<'_>,
    pool: &mut ModulePool,
    call: &Call<'_>,
    inputs: &Inputs<'_>,
) -> Result<Arguments, String> {
    let failed = b.cold_block();
    let code = b.block_param(failed, Type::I32);
    let Call { args, signature, caller } = *call;
    let mut values = Values { b, pool, signature, inputs, caller, failed, missing: None };
    let args = args.iter().map(|arg| values.called(arg)).collect();
    values.missing.map_or(Ok(Arguments { values: args, failed, code }), Err)
}

impl Values<'_, '_> {
    /// The value of an argument of a call. Calls have no scratch memory.
    fn called(&mut self, arg: &KernelArg) -> Value {
        let scratch = &mut |values: &mut Values<'_, '_>, _: &Dim, _: u32| {
            values.missing_value("scratch memory of a call".to_owned(), Type::Ptr)
        };
        let laid = self.argument(arg, scratch);
        match (arg, &laid.stores[..]) {
            (KernelArg::Struct { .. }, fields) => {
                let param = self.c_type(arg).abi();
                let slot = match param.by_value {
                    Some(_) => self.b.slot(laid.bytes.next_multiple_of(8), StructLayout::ADDRESS_ALIGN),
                    None => self.b.slot(laid.bytes, 8),
                };
                let address = self.b.stack_addr(slot);
                for (at, value) in fields {
                    self.place(*value, address, *at);
                }
                match param.by_value {
                    Some(_) => address,
                    None => self.b.load(param.ty, address, 0, MemFlags::ALIGNED),
                }
            }
            (_, [(0, value)]) => *value,
            _ => self.missing_value(format!("{arg} of the kernel"), Type::Ptr),
        }
    }
}
