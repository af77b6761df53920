//! Declares the caller's C functions from their prototypes.

use inkwell::context::ContextRef;
use inkwell::module::{Linkage, Module};
use inkwell::types::FunctionType;
use inkwell::values::FunctionValue;

use super::Error;
use super::facts::Facts;
use super::types::Types;
use crate::ir::FuncSig;

/// The type of a C function.
pub(crate) fn function_type<'ctx>(context: ContextRef<'ctx>, sig: &FuncSig) -> FunctionType<'ctx> {
    Types::new(context).function(sig)
}

/// The type of a C function in a module for a target. Structs by value are passed as the target's C ABI does.
pub(crate) fn c_type<'ctx>(module: &Module<'ctx>, sig: &FuncSig) -> FunctionType<'ctx> {
    Types::of_module(module).outside(sig)
}

/// Declares a C function under an unused name.
pub(crate) fn declare<'ctx>(
    module: &Module<'ctx>,
    name: &str,
    linkage: Option<Linkage>,
    sig: &FuncSig,
) -> Result<FunctionValue<'ctx>, Error> {
    if module.get_function(name).is_some() || module.get_global(name).is_some() {
        return Err(Error::Duplicate { name: name.to_owned() });
    }
    let types = Types::of_module(module);
    let function = module.add_function(name, types.outside(sig), linkage);
    Facts::new(module.get_context(), &types).prototype(function, sig);
    Ok(function)
}
