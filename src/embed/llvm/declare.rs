//! Declares kernels as functions of an `inkwell::module::Module`, from signatures.

use inkwell::context::Context;
use inkwell::module::{Linkage, Module};
use inkwell::types::FunctionType;
use inkwell::values::FunctionValue;

use crate::backend::{CodegenError, llvm};
use crate::embed::{EmbedError, refusal};
use crate::lower::Kernel;
use crate::spec::Signature;

/// The LLVM type of a kernel: its parameters in the order of [`Kernel::parameters`]. Bodies and check-only kernels
/// get the type that a native kernel would have.
///
/// The extensions of narrow integers are attributes of the function; [`declare_kernel`] sets them.
///
/// # Errors
/// The kernel doesn't fit the signature, or takes a struct by value ([`CType::StructOf`](crate::CType::StructOf)).
pub fn kernel_type<'ctx>(
    context: &'ctx Context,
    signature: &Signature,
    kernel: &Kernel,
) -> Result<FunctionType<'ctx>, EmbedError> {
    Ok(llvm::function_type(context.bool_type().get_context(), &refusal::prototype(signature, kernel)?))
}

/// Declares a kernel in your module with [`kernel_type`], the attributes of narrow integers and the names of
/// [`Kernel::parameters`]. The name is the kernel's symbol, or the function's name if the kernel has no symbol.
///
/// The linkage is passed to [`Module::add_function`]. With `Linkage::Internal` LLVM may drop the function after
/// inlining it into the wrapper.
///
/// # Errors
/// As [`kernel_type`], or the name is taken.
pub fn declare_kernel<'ctx>(
    module: &Module<'ctx>,
    linkage: Option<Linkage>,
    signature: &Signature,
    kernel: &Kernel,
) -> Result<FunctionValue<'ctx>, EmbedError> {
    let (params, prototype) = (kernel.parameters(signature)?, refusal::prototype(signature, kernel)?);
    let name = kernel.linked_symbol().unwrap_or(signature.name());
    let function = llvm::declare(module, name, linkage, &prototype).map_err(CodegenError::from)?;
    for (param, value) in params.iter().zip(function.get_param_iter()) {
        value.set_name(&param.name);
    }
    Ok(function)
}
