//! Wrappers in a module that the caller owns: one call adds them next to the caller's own kernels.
//!
//! This is where lowering and a backend meet outside the engine; both know nothing of each other.

use cranelift_module::{FuncId, Module};

use crate::backend::cranelift::{self, Bindings};
use crate::ir;
use crate::lower::{Kernel, KernelReturn, LowerError, Lowering, Routines};
use crate::spec::Signature;

/// Why a wrapper was not added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// The kernel doesn't fit the signature, or a body has mistakes.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// Cranelift can't compile it, or the module has something else of that name or prototype.
    #[error(transparent)]
    Cranelift(#[from] cranelift::Error),
    /// Our own mistake, with the IR's listing.
    #[error("internal error: {0}")]
    Internal(String),
}

/// What a wrapper in a caller's module calls.
#[derive(Clone, Debug)]
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
/// The module has to know the C API when it is finalized or linked: wrappers import `TVMFFIErrorSetRaisedFromCStrParts`
/// and `TVMFFIGetTypeInfo`.
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
    ids.first().copied().ok_or_else(|| EmbedError::Internal("no function was defined".to_owned()))
}

/// As [`add_wrapper`], for several, which share the code and text of their errors.
///
/// # Errors
/// As [`add_wrapper`]; it's all or nothing.
pub fn add_wrappers<'a, M: Module + ?Sized>(
    module: &mut M,
    wrappers: impl IntoIterator<Item = (&'a Signature, Target)>,
) -> Result<Vec<FuncId>, EmbedError> {
    let mut lowering = Lowering::new(Routines::Define);
    let mut bindings = Bindings::new();
    let mut symbols = Vec::new();
    for (signature, target) in wrappers {
        let kernel = match target {
            Target::Kernel(kernel) => kernel,
            Target::Function(id, returns) => {
                // a name for the import alone: nothing outside sees it
                let name = format!("kernel of {}", signature.name());
                bindings = bindings.bind(&name, id);
                let kernel = Kernel::symbol(name);
                match returns {
                    Some(returns) => kernel.returning(returns),
                    None => kernel,
                }
            }
        };
        lowering.add(signature, &kernel)?;
        symbols.push(signature.symbol());
    }
    let ir = ir::verify(lowering.finish()).map_err(|e| EmbedError::Internal(e.to_string()))?;
    let defined = cranelift::compile(&ir, module.isa())?.add_to(module, &bindings)?;
    let missing = |symbol: &str| EmbedError::Internal(format!("{symbol} was not defined"));
    symbols.iter().map(|symbol| defined.function(symbol).ok_or_else(|| missing(symbol))).collect()
}
