//! A `JITModule` of the caller's, from its settings to functions of the runtime.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, FuncOrDataId, Linkage, Module, default_libcall_names};
use tvm_ffi_runtime::Function;
use tvm_ffi_runtime::abi::symbol::LIBRARY_CTX;

use crate::backend::CodegenError;
use crate::backend::cranelift::{self, IsaOptions};
use crate::embed::finish::Loaded;
use crate::embed::{Added, EmbedError, runtime_symbols};
use crate::engine::Memory;

/// This machine with every feature that its CPU has, in Cranelift's own settings for speed, for a `JITModule`.
///
/// # Errors
/// Cranelift has no code generator for this machine.
pub fn host_isa() -> Result<OwnedTargetIsa, EmbedError> {
    Ok(cranelift::host_isa(&IsaOptions::default()).map_err(CodegenError::from)?)
}

/// The settings of a `JITModule` whose code finds the functions of [`runtime_symbols`]. It searches the process for other symbols, unless they are given.
/// The target may not be position-independent.
pub fn jit_builder(isa: OwnedTargetIsa) -> JITBuilder {
    let mut builder = JITBuilder::with_isa(isa, default_libcall_names());
    builder.symbols(runtime_symbols());
    builder
}

/// A `JITModule` of [`jit_builder`]'s settings.
///
/// # Errors
/// The target is position-independent.
pub fn jit_module(isa: OwnedTargetIsa) -> Result<JITModule, EmbedError> {
    // what `JITModule::new` asserts
    if isa.flags().is_pic() {
        let (target, reason) = (isa.triple().to_string(), "a JITModule takes no position-independent code".to_owned());
        return Err(CodegenError::from(cranelift::Error::UnsupportedTarget { target, reason }).into());
    }
    Ok(JITModule::new(jit_builder(isa)))
}

/// Makes a module of the runtime, of kind `jit`, of a `JITModule` with wrappers in it: finalizes the definitions, lets the code find functions of the modules
/// that the new module imports, and tells metadata and docs. What is left of the `JITModule` belongs to the new module and its functions; with
/// the last of them the state of the code is released, the code's memory is freed, and `owner` is dropped.
///
/// # Safety
/// `added` is what was added to this module. Each kernel keeps its side, as for [`Engine::compile`](crate::Engine::compile), and nobody uses
/// addresses of the module's code for longer than the new module and its functions live.
///
/// # Errors
/// A symbol has no address, a function was declared and not defined, or the system gives no memory. The code is then freed.
#[cfg(not(feature = "external-runtime"))]
pub unsafe fn finish(
    module: JITModule,
    added: impl IntoIterator<Item = Added<FuncId>>,
    owner: impl Any + Send + Sync,
) -> Result<tvm_ffi_runtime::Module, EmbedError> {
    // SAFETY: as promised to this function.
    unsafe { Ok(load(module, added.into_iter().collect(), owner)?.into_module()) }
}

/// As `finish`, for the functions alone, in the order in which they were added.
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
    // `JITModule` panics where it can't go on, as where a symbol has no address.
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
    // SAFETY: the addresses are the module's, whose memory `memory` frees.
    unsafe { Loaded::new(added, address, context, Box::new(memory), Arc::new(owner)) }
}

/// The memory of a `JITModule`, which frees none by itself.
struct JitMemory(Mutex<Option<JITModule>>);

impl Drop for JitMemory {
    fn drop(&mut self) {
        if let Some(module) = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            // SAFETY: `Code` drops its memory when nobody can call it any more, and nobody else uses its addresses, as promised to `finish`.
            unsafe { module.free_memory() };
        }
    }
}

impl Memory for JitMemory {
    fn contains(&self, _: usize) -> bool {
        false
    }
}

/// A panic of somebody else's linker, as an error.
fn panicked(payload: Box<dyn Any + Send>) -> EmbedError {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("unknown");
    CodegenError::internal(text).into()
}
