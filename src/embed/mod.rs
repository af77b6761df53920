//! Wrappers in a module that the caller owns: one call adds them next to the caller's own kernels.
//!
//! This is where lowering and a backend meet outside the engine; both know nothing of each other. There is a twin for each
//! kind of module: [`cranelift`] for a `cranelift_module::Module`, `llvm` for an `inkwell::module::Module`.

#[cfg(feature = "cranelift")]
pub mod cranelift;
#[cfg(feature = "_llvm")]
pub mod llvm;

use crate::ir::{self, VerifiedModule};
use crate::lower::{Kernel, KernelReturn, LowerError, Lowering, Routines};
use crate::spec::Signature;
use target_lexicon::Endianness;

#[cfg(feature = "cranelift")]
pub use cranelift::{Target, add_wrapper, add_wrappers};

/// The error of adding a wrapper.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// The kernel doesn't fit the signature, or a body has mistakes.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// Cranelift can't compile it, or the module has something else of that name or prototype.
    #[cfg(feature = "cranelift")]
    #[error(transparent)]
    Cranelift(#[from] crate::backend::cranelift::Error),
    /// LLVM can't take it, or the module has something else of that name or type.
    #[cfg(feature = "_llvm")]
    #[error(transparent)]
    Llvm(#[from] crate::backend::llvm::Error),
    /// Our own mistake, with the IR's listing.
    #[error("internal error: {0}")]
    Internal(String),
}

/// The name that a function of the caller's module goes by as an import: nothing outside sees it.
fn import_name(signature: &Signature) -> String {
    format!("kernel of {}", signature.name())
}

/// Wrappers on the way into a caller's module.
struct Wrappers {
    lowering: Lowering,
    symbols: Vec<String>,
}

impl Wrappers {
    fn new(endianness: Endianness) -> Self {
        let lowering = Lowering::for_endianness(Routines::Define, endianness);
        Wrappers { lowering, symbols: Vec::new() }
    }

    fn add(&mut self, signature: &Signature, kernel: &Kernel) -> Result<(), LowerError> {
        self.lowering.add(signature, kernel)?;
        self.symbols.push(signature.symbol());
        Ok(())
    }

    /// As [`add`](Self::add), for a function of the caller's module that is bound to [`import_name`].
    fn add_function(&mut self, signature: &Signature, returns: Option<KernelReturn>) -> Result<(), LowerError> {
        let kernel = Kernel::symbol(import_name(signature));
        self.add(signature, &returns.map_or(kernel.clone(), |returns| kernel.returning(returns)))
    }

    /// The module, and the wrappers' symbols in order.
    fn finish(self) -> Result<(VerifiedModule, Vec<String>), EmbedError> {
        let module = ir::verify(self.lowering.finish()).map_err(|e| EmbedError::Internal(e.to_string()))?;
        Ok((module, self.symbols))
    }
}
