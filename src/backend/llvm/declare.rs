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
    let types = Types::new(module.get_context());
    let function = module.add_function(name, types.function(sig), linkage);
    Facts::new(module.get_context(), &types).prototype(function, sig);
    Ok(function)
}
