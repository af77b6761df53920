//! Compiles your module, loads it with ORC's LLJIT, and makes functions of the runtime.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use inkwell::module::Module;
use inkwell::targets::TargetMachine;
use tvm_ffi_runtime::Function;
use tvm_ffi_runtime::abi::symbol::LIBRARY_CTX;

use super::refusal;
use crate::backend::{CodegenError, llvm};
use crate::diagnostic::UndefinedSymbol;
use crate::embed::finish::Loaded;
use crate::embed::library::Added;
use crate::embed::{EmbedError, runtime_symbols};
use crate::engine::{EngineError, SymbolResolver, load_object};

/// Compiles a module with wrappers and turns it into a runtime module of kind `jit`. Run your own passes before. The
/// library's own LLJIT loads the code. The code can call functions of the new module's imports, and the new module
/// exposes metadata and docs. When the new module and its functions are dropped, the code's state is released, its
/// memory is freed, and `owner` is dropped. You may drop the LLVM module right after this call.
///
/// Symbols are resolved with [`runtime_symbols`], the C library's math functions, and everything that the process
/// exports. To use your own loader, see [`module_at`](crate::embed::module_at).
///
/// # Safety
/// `added` is what was added to this module. Each kernel fulfils its contract, as for
/// [`Engine::compile`](crate::Engine::compile), and calls functions that the process exports with the right
/// prototypes. The CPU that `machine` names has no features that this CPU lacks.
///
/// # Errors
/// The module or the machine isn't for the host, LLVM can't compile or load the module, or symbols have no address
/// (all of them are named).
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

/// As `finish`, but returns only the functions, in the order in which they were added.
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

/// How to give a symbol its address.
const ADVICE: &str = "define them in the module, or load a library that exports them before";

/// # Safety
/// As [`finish_functions`].
unsafe fn load(
    module: &Module<'_>,
    machine: &TargetMachine,
    added: Vec<Added<String>>,
    owner: impl Any + Send + Sync,
) -> Result<Loaded, EmbedError> {
    refusal::check_host(module, machine)?;
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
            None => {
                let callers = added.iter().flat_map(|one| one.callers.clone()).collect();
                Err(EngineError::Unresolved { names: missing, callers, references: Default::default() })
            }
        }
    };
    let (addresses, memory) = load_object(&object, &resolve, &exports).map_err(|error| match error {
        EngineError::Unresolved { names, callers, .. } => {
            let references = |name: &String| callers.get(name).into_iter().flatten().cloned().collect();
            let symbol = |name: String| UndefinedSymbol { references: references(&name), name };
            EmbedError::Undefined { symbols: names.into_iter().map(symbol).collect(), advice: ADVICE }
        }
        other => other.into(),
    })?;
    let found: HashMap<String, usize> = exports.iter().map(|&name| name.to_owned()).zip(addresses).collect();
    let address = |name: &String| found.get(name).copied().map(std::ptr::with_exposed_provenance);
    let context = address(&LIBRARY_CTX.to_owned());
    // SAFETY: the addresses are those of this load, and `memory` is its memory.
    unsafe { Loaded::new(added, address, context, memory, Arc::new(owner)) }
}
