//! Your own `JITModule`, from its settings to functions of the runtime.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, FuncOrDataId, Linkage, Module, ModuleRelocTarget, default_libcall_names};
use tvm_ffi_runtime::Function;
use tvm_ffi_runtime::abi::symbol::LIBRARY_CTX;

use super::refusal;
use crate::backend::CodegenError;
use crate::backend::cranelift::{self, IsaOptions};
use crate::diagnostic::UndefinedSymbol;
use crate::embed::finish::Loaded;
use crate::embed::library::{Added, Callers};
use crate::embed::{EmbedError, runtime_symbols};
use crate::engine::Memory;

/// The host with all features of its CPU, with Cranelift's own settings for speed, for a `JITModule`.
///
/// # Errors
/// Cranelift has no code generator for the host.
pub fn host_isa() -> Result<OwnedTargetIsa, EmbedError> {
    Ok(cranelift::host_isa(&IsaOptions::default()).map_err(CodegenError::from)?)
}

/// The settings of a `JITModule` whose code can use the functions of [`runtime_symbols`]. Other symbols are searched
/// in the process, unless you define them. The target must not be position-independent.
pub fn jit_builder(isa: OwnedTargetIsa) -> JITBuilder {
    let mut builder = JITBuilder::with_isa(isa, default_libcall_names());
    builder.symbols(runtime_symbols());
    builder
}

/// Creates a `JITModule` with the settings of [`jit_builder`].
///
/// # Errors
/// The target is position-independent or isn't the host: another architecture, another C calling convention, or a
/// feature that this CPU lacks.
pub fn jit_module(isa: OwnedTargetIsa) -> Result<JITModule, EmbedError> {
    refusal::check_host(&*isa)?;
    // `JITModule::new` asserts this
    if isa.flags().is_pic() {
        let (target, reason) = (isa.triple().to_string(), "a JITModule takes no position-independent code".to_owned());
        return Err(CodegenError::from(cranelift::Error::UnsupportedTarget { target, reason }).into());
    }
    Ok(JITModule::new(jit_builder(isa)))
}

/// Turns a `JITModule` with wrappers into a runtime module of kind `jit`. This finalizes the definitions, lets the
/// code call functions of the new module's imports, and exposes metadata and docs. The new module and its functions
/// own the `JITModule`. When the last of them is dropped, the code's state is released, its memory is freed, and
/// `owner` is dropped.
///
/// # Safety
/// `added` is what was added to this module. Each kernel fulfils its contract, as for
/// [`Engine::compile`](crate::Engine::compile). Addresses of the module's code are only used while the new module or
/// one of its functions lives.
///
/// # Errors
/// The module is for another machine than the host, a symbol has no address, a function was declared but not defined,
/// or the system has no memory left. The code is then freed.
#[cfg(not(feature = "external-runtime"))]
pub unsafe fn finish(
    module: JITModule,
    added: impl IntoIterator<Item = Added<FuncId>>,
    owner: impl Any + Send + Sync,
) -> Result<tvm_ffi_runtime::Module, EmbedError> {
    // SAFETY: as promised to this function.
    unsafe { Ok(load(module, added.into_iter().collect(), owner)?.into_module()) }
}

/// As `finish`, but returns only the functions, in the order in which they were added.
///
/// # Safety
/// As `finish`.
///
/// # Errors
/// As `finish`.
pub unsafe fn finish_functions(
    module: JITModule,
    added: impl IntoIterator<Item = Added<FuncId>>,
    owner: impl Any + Send + Sync,
) -> Result<Vec<Function>, EmbedError> {
    // SAFETY: as promised to this function.
    unsafe { load(module, added.into_iter().collect(), owner)?.into_functions() }
}

/// # Safety
/// As `finish`.
unsafe fn load(
    module: JITModule,
    added: Vec<Added<FuncId>>,
    owner: impl Any + Send + Sync,
) -> Result<Loaded, EmbedError> {
    let mut memory = JitMemory(Mutex::new(Some(module)));
    let Some(module) = memory.0.get_mut().unwrap_or_else(PoisonError::into_inner) else {
        return Err(CodegenError::internal("a module is gone").into());
    };
    refusal::check_host(module.isa())?;
    check_imports(module, &added)?;
    // `JITModule` panics on errors, for example if one of the caller's functions calls a symbol without an address.
    // This can't be checked in advance.
    let (addresses, context) = catch_unwind(AssertUnwindSafe(|| {
        module.finalize_definitions().map_err(|e| CodegenError::Cranelift(e.into()))?;
        let ids = added.iter().flat_map(|one| one.functions().chain(&one.destructors));
        let addresses: HashMap<_, _> = ids.map(|&id| (id, module.get_finalized_function(id))).collect();
        let context = match module.get_name(LIBRARY_CTX) {
            Some(FuncOrDataId::Data(id)) if module.declarations().get_data_decl(id).linkage != Linkage::Import => {
                Some(module.get_finalized_data(id).0)
            }
            _ => None,
        };
        Ok::<_, EmbedError>((addresses, context))
    }))
    .map_err(panicked)??;
    let address = |id: &FuncId| addresses.get(id).copied();
    // SAFETY: the addresses belong to the module, and `memory` frees the module's memory.
    unsafe { Loaded::new(added, address, context, Box::new(memory), Arc::new(owner)) }
}

/// The memory of a `JITModule`, which doesn't free it on its own.
struct JitMemory(Mutex<Option<JITModule>>);

impl Drop for JitMemory {
    fn drop(&mut self) {
        if let Some(module) = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            // SAFETY: `Code` drops its memory when its functions can no longer be called, and there are no other
            // users of its addresses, as promised to `finish`.
            unsafe { module.free_memory() };
        }
    }
}

impl Memory for JitMemory {
    fn contains(&self, _: usize) -> bool {
        false
    }
}

/// How to give a symbol its address.
const ADVICE: &str = "define them in the module, or give them addresses with `JITBuilder::symbol` \
    (`embed::cranelift::jit_builder` makes such a builder)";

/// Checks that all symbols that wrappers import have addresses. The error names every missing symbol with the
/// functions that call it.
fn check_imports(module: &mut JITModule, added: &[Added<FuncId>]) -> Result<(), EmbedError> {
    let mut symbols = Vec::new();
    let mut callers: Callers = Callers::new();
    for (symbol, by) in added.iter().flat_map(|one| &one.callers) {
        callers.entry(symbol.clone()).or_default().extend(by.iter().cloned());
    }
    for (symbol, by) in callers {
        // a stand-in name for a function of the caller's module is not in its table
        let Some(FuncOrDataId::Func(id)) = module.get_name(&symbol) else { continue };
        let declared = module.declarations().get_function_decl(id);
        if declared.linkage != Linkage::Import {
            continue;
        }
        // `JITModule` accepts a missing address only for preemptible imports
        let signature = declared.signature.clone();
        let id = module
            .declare_function(&symbol, Linkage::Preemptible, &signature)
            .map_err(|error| CodegenError::Cranelift(error.into()))?;
        if module.get_address(&ModuleRelocTarget::user(0, id.as_u32())).is_null() {
            symbols.push(UndefinedSymbol { name: symbol, references: by.into_iter().collect() });
        }
    }
    if symbols.is_empty() { Ok(()) } else { Err(EmbedError::Undefined { symbols, advice: ADVICE }) }
}

/// Converts a panic of `cranelift-jit` to an error.
fn panicked(payload: Box<dyn Any + Send>) -> EmbedError {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("unknown");
    // its message for a symbol without an address
    match ["can't resolve symbol ", "can't resolve libcall "].iter().find_map(|words| text.strip_prefix(words)) {
        Some(name) => {
            let symbols = vec![UndefinedSymbol { name: name.to_owned(), references: Vec::new() }];
            EmbedError::Undefined { symbols, advice: ADVICE }
        }
        None => CodegenError::internal(text).into(),
    }
}
