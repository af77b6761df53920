//! The functions of the C API that wrappers need.

use crate::lower::{C_FUNCTIONS, Importer};
use tvm_ffi_runtime::capi;

/// The functions that a wrapper may import, with their addresses in this process: those of the C API in the bundled runtime, and the runtime helpers for
/// a module that doesn't define them ([`Library::in_process`](super::Library::in_process)). Helpers are compiled when they are first called, and stay.
/// On Windows the functions of kernel32 that launches call are among them.
///
/// A module that has wrappers, and is run in this process, has to know them all, or those that it imports. A module that is linked leaves them
/// to the linker, which finds them in `libtvm_ffi` or the bundled runtime's libraries.
///
/// In a shared library that several runtimes may meet in, ask [`capi::check_symbols`] first, as an engine does.
///
#[cfg_attr(feature = "cranelift", doc = "```")]
#[cfg_attr(not(feature = "cranelift"), doc = "```text")]
/// use cranelift_jit::{JITBuilder, JITModule};
/// use tvm_ffi_codegen::{Kernel, Signature, embed};
///
/// let mut builder = JITBuilder::new(cranelift_module::default_libcall_names())?;
/// builder.symbols(embed::runtime_symbols());
/// let mut module = JITModule::new(builder);
/// let check: Signature = "check(x: Map[str, int64])".parse()?;
/// let id = embed::add_wrapper(&mut module, &check, Kernel::check_only())?;
/// module.finalize_definitions()?;
/// assert!(!module.get_finalized_function(id).is_null());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn runtime_symbols() -> impl Iterator<Item = (&'static str, *const u8)> {
    let wanted = C_FUNCTIONS.iter().filter(|function| function.importer != Importer::Library);
    let functions = wanted.filter_map(|function| {
        let (_, address) = capi::symbols().iter().find(|(name, _)| *name == function.symbol)?;
        Some((function.symbol, address.as_ptr().cast()))
    });
    #[cfg(feature = "_engine")]
    let functions = functions.chain(crate::engine::helpers_of_process());
    #[cfg(all(feature = "_engine", windows))]
    let functions = functions.chain(crate::engine::of_kernel32());
    functions
}
