//! The functions of the C API that wrappers need.

use crate::lower::{C_FUNCTIONS, Importer};
use tvm_ffi_runtime::capi;

/// The functions that a wrapper may import, with their addresses in this process. These are the functions of the C
/// API in the bundled runtime, and the runtime helpers for a module that doesn't define them
/// ([`Wrappers::in_process`](super::Wrappers::in_process)). Helpers are compiled at their first call and stay loaded.
/// The list also has the C library's functions that bodies call and, on Windows, the kernel32 functions that launches
/// call.
///
/// If a module with wrappers runs in this process, it must resolve all of them, or at least those it imports. In a
/// module that is linked, the linker resolves them with `libtvm_ffi` or the bundled runtime's libraries.
///
/// In a shared library that may meet several runtimes in a process, call [`capi::check_symbols`] first, as an engine
/// does.
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
/// let id = embed::cranelift::add_wrapper(&mut module, &check, Kernel::check_only())?;
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
    #[cfg(feature = "_engine")]
    let functions = functions.chain(crate::engine::c_functions());
    functions
}
