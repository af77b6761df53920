//! A module of the caller's, compiled and loaded by ORC's LLJIT, as functions of the runtime.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use inkwell::module::Module;
use inkwell::targets::TargetMachine;
use tvm_ffi_runtime::Function;
use tvm_ffi_runtime::abi::symbol::LIBRARY_CTX;

use crate::backend::{CodegenError, llvm};
use crate::embed::finish::Loaded;
use crate::embed::{Added, EmbedError, runtime_symbols};
use crate::engine::{EngineError, SymbolResolver, load_object};

/// Compiles a module with wrappers in it, once the caller's passes are through, and makes a module of the runtime, of kind `jit`, of it: the code is
/// loaded by the library's own LLJIT, finds functions of the modules that the new module imports, and the new module tells metadata and docs. With
/// the last of the new module and its functions the state of the code is released, the code's memory is freed, and `owner` is dropped. Nothing of LLVM's
/// module is needed any more.
///
/// Symbols are those of [`runtime_symbols`], of the C library's math, and all that the process exports.
/// [`module_at`](crate::embed::module_at) is for a loader of the caller's own.
///
/// # Safety
/// `added` is what was added to this module. Each kernel keeps its side, as for [`Engine::compile`](crate::Engine::compile), and calls what the
/// process exports with the right prototypes.
///
/// # Errors
/// LLVM can't compile the module, or load it; or a symbol has no address: all of them are named.
#[cfg(not(feature = "external-runtime"))]
pub unsafe fn finish(
    module: &Module<'_>,
    machine: &TargetMachine,
    added: impl IntoIterator<Item = Added<String>>,
    owner: impl Any + Send + Sync,
) -> Result<tvm_ffi_runtime::Module, EmbedError> {
    // SAFETY: as promised to this function.
    unsafe { Ok(load(module, machine, added.into_iter().collect(), owner)?.into_module()) }
}

/// As `finish`, for the functions alone, in the order in which they were added.
///
/// # Safety
/// As `finish`.
///
/// # Errors
/// As `finish`.
pub unsafe fn finish_functions(
    module: &Module<'_>,
    machine: &TargetMachine,
    added: impl IntoIterator<Item = Added<String>>,
    owner: impl Any + Send + Sync,
) -> Result<Vec<Function>, EmbedError> {
    // SAFETY: as promised to this function.
    unsafe { load(module, machine, added.into_iter().collect(), owner)?.into_functions() }
}

/// # Safety
/// As [`finish_functions`].
unsafe fn load(
    module: &Module<'_>,
    machine: &TargetMachine,
    added: Vec<Added<String>>,
    owner: impl Any + Send + Sync,
) -> Result<Loaded, EmbedError> {
    let object = llvm::object_of(module, machine).map_err(CodegenError::from)?;
    let mut symbols = SymbolResolver::new();
    symbols.add_all(runtime_symbols());
    symbols.search_process();
    let has_context = module.get_global(LIBRARY_CTX).is_some_and(|context| context.get_initializer().is_some());
    let mut exports: Vec<&str> =
        added.iter().flat_map(|one| one.functions().chain(&one.destructors)).map(|s| &**s).collect();
    exports.extend(has_context.then_some(LIBRARY_CTX));
    let resolve = |names: &[String]| {
        let found: Vec<_> = names.iter().map(|name| symbols.resolve(name)).collect();
        let missing = names.iter().zip(&found).filter(|(_, address)| address.is_none()).map(|(name, _)| name.clone());
        let missing: Vec<String> = missing.collect();
        match found.into_iter().collect() {
            Some(addresses) => Ok(addresses),
            None => Err(EngineError::Unresolved {
                names: missing,
                callers: Default::default(),
                references: Default::default(),
            }),
        }
    };
    let (addresses, memory) = load_object(&object, &resolve, &exports)?;
    let found: HashMap<String, usize> = exports.iter().map(|&name| name.to_owned()).zip(addresses).collect();
    let address = |name: &String| found.get(name).copied().map(std::ptr::with_exposed_provenance);
    let context = address(&LIBRARY_CTX.to_owned());
    // SAFETY: the addresses are those of this load, whose memory is `memory`.
    unsafe { Loaded::new(added, address, context, memory, Arc::new(owner)) }
}
