//! Wrappers in a module that the caller owns: one call adds them next to the caller's own kernels.
//!
//! This is where lowering and a backend meet outside the engine; both know nothing of each other. There is a twin for each
//! kind of module: [`cranelift`] for a `cranelift_module::Module`, `llvm` for an `inkwell::module::Module`.
//!
//! - [`add_wrapper`] adds a wrapper to any module, which then stands alone.
//! - A [`Library`] for a module that [runs in this process](Library::in_process) shares the runtime helpers with all engines, and `finish`
//!   ([`cranelift::finish`], `llvm::finish`, [`module_at`]) makes a [`Module`](crate::runtime::Module) of it, which owns and frees the code.
//! - A [`Library`] for a module that becomes [an object file](Library::new) adds metadata, docs, the library's context and, for
//!   a [system library](Library::system), its registration.
//!
//! # Symbols that the module has to resolve
//!
//! - Functions of the C API, and in a module of this process the runtime helpers: at most the functions of [`runtime_symbols`], which gives their
//!   addresses in this process. [`lower::C_FUNCTIONS`](crate::lower::C_FUNCTIONS) has the C API's prototypes.
//! - The kernels that were given by [`Kernel::symbol`](crate::Kernel::symbol), under their names.
//! - Functions of the C library's math, such as `expf`, where a [body](crate::Body) calls them, or rounds and the CPU has no instruction for it.
//!   [`SymbolResolver`](crate::engine::SymbolResolver) finds them.
//! - Where code calls functions of imported modules: the variable `__tvm_ffi__library_ctx`, in which it looks for the module that has them. It is
//!   defined with the first such wrapper, unless the module has it already. `finish` stores the module's handle there, as loaders of
//!   libraries do; until then such calls fail. In objects the variable is weak, so that several may be linked together; in COFF it is not,
//!   and one module has to define it and others to import it.
//! - With LLVM, whatever the caller's own passes make of loops of bodies and kernels: `memcpy`, `memset` and the like. Our own loops stay loops.
//!
//! # Helpers
//!
//! All wrappers of a module share one copy of the runtime helpers, however they were added. It has the parts that the first wrapper needs; a second copy,
//! with the parts that were asked for until then, comes only with a wrapper that needs others, and a third one has everything.
//!
//! # State
//!
//! Code may keep things between calls, such as the global functions that it has looked up. What `finish` makes releases them when the code goes, and so
//! do the object files of a [`Library`], [objects](crate::artifact) and the code of an [`Engine`](crate::Engine). Nobody tells code that [`add_wrapper`] has
//! added when its module goes: what it keeps it keeps for good.

#[cfg(feature = "cranelift")]
pub mod cranelift;
#[cfg(feature = "_engine")]
mod finish;
#[cfg(feature = "_engine")]
mod library;
#[cfg(feature = "_llvm")]
pub mod llvm;
mod symbols;

use crate::backend::CodegenError;
use crate::lower::LowerError;

#[cfg(feature = "cranelift")]
pub use cranelift::{Target, add_wrapper, add_wrappers};
#[cfg(feature = "_engine")]
pub use finish::functions_at;
#[cfg(all(feature = "_engine", not(feature = "external-runtime")))]
pub use finish::module_at;
#[cfg(feature = "_engine")]
pub use library::{Added, Library};
pub use symbols::runtime_symbols;

/// The error of adding a wrapper.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// The kernel doesn't fit the signature, or a body has mistakes.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The backend can't compile it, or the module has something else of that name, prototype or type.
    #[error(transparent)]
    Codegen(#[from] CodegenError),
    /// The code can't be loaded.
    #[error(transparent)]
    Load(#[from] crate::engine::EngineError),
}

/// A function that should have been defined, but was not.
#[cfg(feature = "_engine")]
fn undefined(symbol: &str) -> EmbedError {
    CodegenError::internal(format!("{symbol} was not defined")).into()
}
