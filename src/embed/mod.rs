//! Adds wrappers to a module that you own: one call adds them next to your own kernels.
//!
//! Lowering and a backend meet here outside the engine; they don't depend on each other. Each kind of module has a
//! submodule: [`cranelift`] for a `cranelift_module::Module`, `llvm` for an `inkwell::module::Module`.
//!
//! - [`cranelift::add_wrapper`] and `llvm::add_wrapper` add a self-contained wrapper to any module.
//! - A [`Wrappers`] for a module that [runs in this process](Wrappers::in_process) shares the runtime helpers with all
//!   engines. `finish` ([`cranelift::finish`], `llvm::finish`, [`module_at`]) turns the module into a
//!   [`Module`](crate::runtime::Module), which owns and frees the code.
//! - A [`Wrappers`] for a module that becomes [an object file](Wrappers::new) adds metadata, docs, the library's
//!   context and, for a [system library](Wrappers::system), its registration.
//!
//! A compiler of kernels declares each of them with `Wrappers::native`. One call takes the signature, adds the wrapper,
//! and returns the function to define in the module, a [`Native`]. That also declares the functions that the kernel's
//! code calls to raise errors and to call TVM FFI functions.
//!
//! # Symbols that the module has to resolve
//!
//! - Functions of the C API and, in a module of this process, the runtime helpers: at most the functions of
//!   [`runtime_symbols`], which returns their addresses in this process.
//! - Kernels given with [`Kernel::symbol`](crate::Kernel::symbol), under their names.
//! - The C library's math functions, such as `expf`, if a [body](crate::Body) calls them, or rounds and the CPU has
//!   no instruction for it. [`SymbolResolver`](crate::engine::SymbolResolver) finds them.
//! - If code calls functions of imported modules: the variable `__tvm_ffi__library_ctx`, which leads to the module
//!   with the imports. The first such wrapper defines it, unless the module has it already. `finish` stores the
//!   module's handle there, as loaders of libraries do; until then such calls fail. In objects the variable is weak,
//!   so several objects may be linked together. In COFF it isn't weak: one module has to define it and the others
//!   must import it.
//! - With LLVM, functions that your own passes introduce for loops in bodies and kernels: `memcpy`, `memset` and the
//!   like. The library's own loops stay loops.
//!
//! # Helpers
//!
//! All wrappers of a module share one copy of the runtime helpers, however they were added. It has the parts that the
//! first wrapper needs. If a later wrapper needs other parts, a second copy is added with all parts requested so far.
//! A third copy has every part.
//!
//! # State
//!
//! Code may keep values between calls, such as the global functions that it has looked up. The results of `finish`
//! release them when the code is unloaded. So do the object files of a [`Wrappers`], [objects](crate::artifact) and
//! the code of an [`Engine`](crate::Engine). Code added with `add_wrapper` is not notified when its module is
//! freed, so it never releases such values.

#[cfg(feature = "cranelift")]
pub mod cranelift;
mod error;
#[cfg(feature = "_engine")]
mod finish;
#[cfg(feature = "_engine")]
mod library;
#[cfg(feature = "_llvm")]
pub mod llvm;
#[cfg(feature = "_engine")]
mod native;
mod refusal;
mod symbols;

pub use error::{EmbedError, HostProblem};
#[cfg(feature = "_engine")]
pub use finish::functions_at;
#[cfg(all(feature = "_engine", not(feature = "external-runtime")))]
pub use finish::module_at;
#[cfg(feature = "_engine")]
pub use library::{Added, Wrappers};
#[cfg(feature = "_engine")]
pub use native::Native;
pub use symbols::runtime_symbols;
