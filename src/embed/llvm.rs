//! Wrappers in an `inkwell::module::Module` (inkwell 0.11) of the caller's.

use std::collections::HashMap;

use inkwell::module::Module;
use inkwell::values::FunctionValue;

use super::{EmbedError, Wrappers, bound_kernel, import_name, undefined};
use crate::backend::{CodegenError, llvm};
use crate::lower::{Kernel, KernelReturn};
use crate::spec::Signature;

mod declare;
mod refusal;

pub use declare::{declare_kernel, kernel_type};

/// The function that a wrapper in a caller's module calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Target<'ctx> {
    /// A function of that module, by convention `flat`; `None` for the return that [`Kernel::symbol`] assumes. LLVM may
    /// inline it into the wrapper.
    Function(FunctionValue<'ctx>, Option<KernelReturn>),
    /// Any other kernel. A [symbol](Kernel::symbol) is looked up in the module, and declared if it isn't there.
    Kernel(Kernel),
}

impl<'ctx> From<FunctionValue<'ctx>> for Target<'ctx> {
    fn from(function: FunctionValue<'ctx>) -> Self {
        Target::Function(function, None)
    }
}

impl From<Kernel> for Target<'_> {
    fn from(kernel: Kernel) -> Self {
        Target::Kernel(kernel)
    }
}

/// Adds a wrapper to the caller's module, as an exported function [`Signature::symbol`].
///
/// The module has to know the functions of the C API that the wrapper declares when it is linked:
/// [`runtime_symbols`](super::runtime_symbols) has them. The wrapper is left unoptimised; the
/// caller's passes go over all of it.
///
/// # Errors
/// The kernel doesn't fit the signature, or its type isn't that of the convention; a name is taken. The module is then as it
/// was.
pub fn add_wrapper<'ctx>(
    module: &Module<'ctx>,
    signature: &Signature,
    target: impl Into<Target<'ctx>>,
) -> Result<FunctionValue<'ctx>, EmbedError> {
    let functions = add_wrappers(module, [(signature, target.into())])?;
    functions.first().copied().ok_or_else(|| undefined(&signature.symbol()))
}

/// Adds several wrappers, as [`add_wrapper`] does one. They share the code and text of their errors.
///
/// # Errors
/// As [`add_wrapper`]; it's all or nothing.
pub fn add_wrappers<'ctx, 'a>(
    module: &Module<'ctx>,
    wrappers: impl IntoIterator<Item = (&'a Signature, Target<'ctx>)>,
) -> Result<Vec<FunctionValue<'ctx>>, EmbedError> {
    refusal::check_machine(module)?;
    let mut all = Wrappers::new(llvm::ENDIANNESS);
    let mut bindings = HashMap::new();
    for (signature, target) in wrappers {
        match target {
            Target::Kernel(kernel) => {
                refusal::check_linked(module, signature, &kernel)?;
                all.add(signature, &kernel)?;
            }
            Target::Function(function, returns) => {
                bindings.insert(import_name(signature), function);
                let kernel = bound_kernel(signature, returns);
                refusal::check_function(module, signature, &kernel, function)?;
                all.add(signature, &kernel)?;
            }
        }
    }
    let (ir, symbols) = all.finish()?;
    llvm::add_to(&ir, module, &bindings).map_err(CodegenError::from)?;
    symbols.iter().map(|symbol| module.get_function(symbol).ok_or_else(|| undefined(symbol))).collect()
}

#[cfg(test)]
mod tests;
