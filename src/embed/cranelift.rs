//! Wrappers in a `cranelift_module::Module` of the caller's.

use cranelift_module::{FuncId, Module};

use super::{EmbedError, Wrappers, bound_kernel, import_name, undefined};
use crate::backend::CodegenError;
use crate::backend::cranelift::{self, Bindings};
use crate::ir::HOST_ENDIANNESS;
use crate::lower::{Kernel, KernelReturn};
use crate::spec::Signature;

mod declare;
mod refusal;

pub use declare::{declare_kernel, kernel_signature};

/// The function that a wrapper in a caller's module calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Target {
    /// A function of that module, by convention `flat`; `None` for the return that [`Kernel::symbol`] assumes.
    Function(FuncId, Option<KernelReturn>),
    /// Any other kernel. A [symbol](Kernel::symbol) is looked up in the module, and imported if it isn't there.
    Kernel(Kernel),
}

impl From<FuncId> for Target {
    fn from(id: FuncId) -> Self {
        Target::Function(id, None)
    }
}

impl From<Kernel> for Target {
    fn from(kernel: Kernel) -> Self {
        Target::Kernel(kernel)
    }
}

/// Adds a wrapper to the caller's module, as an exported function [`Signature::symbol`].
///
/// The module has to know the functions of the C API that the wrapper imports when it is finalized or linked:
/// [`runtime_symbols`](super::runtime_symbols) has them.
///
/// # Errors
/// The kernel doesn't fit the signature, or its prototype in the module isn't that of the convention; a name is taken. The module
/// is then as it was.
pub fn add_wrapper<M: Module + ?Sized>(
    module: &mut M,
    signature: &Signature,
    target: impl Into<Target>,
) -> Result<FuncId, EmbedError> {
    let ids = add_wrappers(module, [(signature, target.into())])?;
    ids.first().copied().ok_or_else(|| undefined(&signature.symbol()))
}

/// Adds several wrappers, as [`add_wrapper`] does one. They share the code and text of their errors.
///
/// # Errors
/// As [`add_wrapper`]; it's all or nothing.
pub fn add_wrappers<'a, M: Module + ?Sized>(
    module: &mut M,
    wrappers: impl IntoIterator<Item = (&'a Signature, Target)>,
) -> Result<Vec<FuncId>, EmbedError> {
    refusal::check_machine(module.isa())?;
    let mut all = Wrappers::new(module.isa().triple().endianness().unwrap_or(HOST_ENDIANNESS));
    let mut bindings = Bindings::new();
    for (signature, target) in wrappers {
        match target {
            Target::Kernel(kernel) => {
                refusal::check_linked(module, signature, &kernel)?;
                all.add(signature, &kernel)?;
            }
            Target::Function(id, returns) => {
                bindings = bindings.bind(import_name(signature), id);
                let kernel = bound_kernel(signature, returns);
                refusal::check_function(module, signature, &kernel, id)?;
                all.add(signature, &kernel)?;
            }
        }
    }
    let (ir, symbols) = all.finish()?;
    let compiled = cranelift::compile(&ir, module.isa()).map_err(CodegenError::from)?;
    let defined = compiled.add_to(module, &bindings).map_err(CodegenError::from)?;
    symbols.iter().map(|symbol| defined.function(symbol).ok_or_else(|| undefined(symbol))).collect()
}
