//! Wrappers in a module that the caller owns: one call adds them next to the caller's own kernels.
//!
//! This is where lowering and a backend meet outside the engine; both know nothing of each other. There is a twin for each
//! kind of module: [`cranelift`] for a `cranelift_module::Module`, `llvm` for an `inkwell::module::Module`.
//!
//! # Symbols that the module has to resolve
//!
//! - Functions of the C API: at most the functions of [`runtime_symbols`], which gives their addresses in this process.
//!   [`lower::C_FUNCTIONS`](crate::lower::C_FUNCTIONS) has their prototypes.
//! - The kernels that were given by [`Kernel::symbol`], under their names.
//! - Functions of the C library's math, such as `expf`, where a [body](crate::Body) calls them, or rounds and the CPU has no instruction for it.
//!   [`SymbolResolver`](crate::engine::SymbolResolver) finds them.
//! - Where code calls functions of imported modules: the variable `__tvm_ffi__library_ctx`, in which it looks for the module that has them. It is
//!   defined with the first such wrapper, unless the module has it already. Whoever runs the code stores the module's handle there, as loaders of
//!   libraries do; until then such calls fail. In objects the variable is weak, so that several may be linked together; in COFF it is not,
//!   and one module has to define it and others to import it.
//! - With LLVM, whatever the caller's own passes make of loops: `memcpy`, `memset` and the like.
//!
//! # State
//!
//! Code may keep things between calls, such as the global functions that it has looked up. Nobody tells the code when a module of the caller's
//! goes, so what it keeps it keeps for good. [Objects](crate::artifact) and an [`Engine`](crate::Engine)'s code release it.

#[cfg(feature = "cranelift")]
pub mod cranelift;
#[cfg(feature = "_llvm")]
pub mod llvm;
mod refusal;
mod symbols;

use crate::backend::CodegenError;
use crate::ir::{self, VerifiedModule};
use crate::lower::{Kernel, KernelReturn, LowerError, Lowering, RuntimeHelpers};
use crate::spec::Signature;
use target_lexicon::Endianness;

#[cfg(feature = "cranelift")]
pub use cranelift::{Target, add_wrapper, add_wrappers};
pub use symbols::runtime_symbols;

/// The error of adding a wrapper.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// The module is for a machine that wrappers don't run on.
    #[error("wrappers can't be added to a module for `{target}`: {problem}")]
    Machine {
        /// The machine, as the module states it.
        target: String,
        /// The reason, and a way out.
        problem: String,
    },
    /// The kernel in the module isn't called as the signature, the convention and the result say.
    #[error("the kernel `{kernel}` of function `{function}` {problem}; its prototype is `{prototype}`")]
    Prototype {
        /// The function.
        function: String,
        /// The kernel's name in the module.
        kernel: String,
        /// The difference, and what would fit.
        problem: String,
        /// The prototype in C.
        prototype: String,
    },
    /// The kernel doesn't fit the signature, or a body has mistakes.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The backend can't compile it, or the module has something else of that name, prototype or type.
    #[error(transparent)]
    Codegen(#[from] CodegenError),
}

/// A function that should have been defined, but was not.
fn undefined(symbol: &str) -> EmbedError {
    CodegenError::internal(format!("{symbol} was not defined")).into()
}

/// The kernel that a function of the caller's module is, bound to [`import_name`].
fn bound_kernel(signature: &Signature, returns: Option<KernelReturn>) -> Kernel {
    let kernel = Kernel::symbol(import_name(signature));
    returns.into_iter().fold(kernel, Kernel::returning)
}

/// The name that a function of the caller's module goes by as an import: nothing outside sees it.
fn import_name(signature: &Signature) -> String {
    format!("kernel of {}", signature.name())
}

/// Wrappers on the way into a caller's module.
struct Wrappers {
    lowering: Lowering,
    symbols: Vec<String>,
    signatures: Vec<Signature>,
}

impl Wrappers {
    fn new(endianness: Endianness) -> Self {
        let lowering = Lowering::for_endianness(RuntimeHelpers::Define, endianness);
        Wrappers { lowering, symbols: Vec::new(), signatures: Vec::new() }
    }

    fn add(&mut self, signature: &Signature, kernel: &Kernel) -> Result<(), LowerError> {
        self.lowering.add(signature, kernel)?;
        self.symbols.push(signature.symbol());
        self.signatures.push(signature.clone());
        Ok(())
    }

    /// The module, and the wrappers' symbols in order.
    fn finish(self) -> Result<(VerifiedModule, Vec<String>), EmbedError> {
        if let Some(mistake) = self.lowering.check_calls(&self.signatures).into_iter().next() {
            return Err(mistake.into());
        }
        let module = ir::verify(self.lowering.finish()).map_err(CodegenError::from)?;
        Ok((module, self.symbols))
    }
}
