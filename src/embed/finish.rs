//! Modules and functions of the runtime, made of code that the caller's generator has made and somebody has loaded.

use std::any::Any;
use std::sync::Arc;

use tvm_ffi_runtime::Function;
use tvm_ffi_runtime::abi::TVMFFISafeCallType;
use tvm_ffi_runtime::abi::symbol::LIBRARY_CTX;

use super::library::{Added, Wrapper};
use super::{EmbedError, undefined};
use crate::engine::{Code, KeepAlive, Memory, Symbols};

/// Code with the wrappers in it.
pub(super) struct Loaded {
    code: Arc<Code>,
    wrappers: Vec<Wrapper<TVMFFISafeCallType>>,
}

impl Loaded {
    /// Takes code over: addresses for the functions of `added`, by their names for the backend.
    ///
    /// # Safety
    /// The addresses are those of the functions that were added, and of the variable for the library's context. They stay good for as long as `memory`
    /// and `owner` live, which nobody else frees.
    pub(super) unsafe fn new<F>(
        added: Vec<Added<F>>,
        address: impl Fn(&F) -> Option<*const u8>,
        context: Option<*const u8>,
        memory: Box<dyn Memory>,
        owner: KeepAlive,
    ) -> Result<Self, EmbedError> {
        let mut symbols = Symbols::default();
        symbols.variables.extend(context.map(|at| (LIBRARY_CTX.into(), at.expose_provenance())));
        let mut wrappers = Vec::new();
        for Added { functions, destructors } in added {
            for destructor in destructors {
                let at = address(&destructor).ok_or_else(|| undefined("a destructor"))?;
                symbols.destructors.push(at.expose_provenance());
            }
            for Wrapper { id, signature, doc, launches } in functions {
                let at = address(&id).filter(|at| !at.is_null()).ok_or_else(|| undefined(&signature.symbol()))?;
                // SAFETY: lowering exports wrappers with the prototype of `TVMFFISafeCallType` (tvm/ffi/c_api.h), and the address is not null.
                let id = unsafe { std::mem::transmute::<*const u8, TVMFFISafeCallType>(at) };
                wrappers.push(Wrapper { id, signature, doc, launches });
            }
        }
        let code = Code::adopt(symbols, memory, vec![owner]);
        // SAFETY: lowering makes destructors so that they only release what the module's functions have got from the runtime, and end threads that these have
        // made.
        unsafe { code.run_destructors_on_drop() };
        Ok(Loaded { code, wrappers })
    }

    /// A module, of kind `jit`, that owns the code.
    ///
    /// # Safety
    /// The kernels keep to their signatures.
    #[cfg(not(feature = "external-runtime"))]
    pub(super) unsafe fn into_module(self) -> tvm_ffi_runtime::Module {
        let function = |Wrapper { id, signature, doc, launches }: Wrapper<_>| crate::engine::ModuleFunction {
            safe_call: id,
            signature,
            doc,
            launches,
        };
        // SAFETY: as here; nobody else has the code.
        unsafe { crate::engine::module_of_code(self.code, self.wrappers.into_iter().map(function)) }
    }

    /// The functions, in order. With the bundled runtime they own a module, which code with state needs.
    ///
    /// # Safety
    /// The kernels keep to their signatures.
    pub(super) unsafe fn into_functions(self) -> Result<Vec<Function>, EmbedError> {
        #[cfg(not(feature = "external-runtime"))]
        {
            let names: Vec<String> = self.wrappers.iter().map(|w| w.signature.name().to_owned()).collect();
            // SAFETY: as here.
            let module = unsafe { self.into_module() };
            let function = |name: &String| module.get_function(name).ok().flatten().ok_or_else(|| undefined(name));
            names.iter().map(function).collect()
        }
        #[cfg(feature = "external-runtime")]
        {
            // SAFETY: each function owns the code, so that the address is good as long as it may be called.
            let function = |w: &Wrapper<_>| unsafe { Function::from_code(w.id, Arc::clone(&self.code)) };
            Ok(self.wrappers.iter().map(function).collect())
        }
    }
}

/// Memory that is the owner's.
struct OfOwner;

impl Memory for OfOwner {
    fn contains(&self, _: usize) -> bool {
        false
    }
}

/// Makes functions of wrappers that the caller has loaded, by a loader of its own: an LLJIT, an `ExecutionEngine`, a linker in memory. `address` gives
/// the address of a symbol: it is asked for each wrapper's ([`Signature::symbol`](crate::Signature::symbol)), for functions that run when the code goes,
/// and for `__tvm_ffi__library_ctx`, which a module without calls of imported functions doesn't have. `owner` is what the code lives as long as; it is dropped
/// with the last function.
///
/// # Safety
/// `address` gives the addresses of the symbols in one load of the module, good for as long as `owner` lives. Each kernel keeps its side, as for
/// [`Engine::compile`](crate::Engine::compile).
///
/// # Errors
/// A wrapper has no address.
pub unsafe fn functions_at(
    added: impl IntoIterator<Item = Added<String>>,
    address: impl Fn(&str) -> Option<*const u8>,
    owner: impl Any + Send + Sync,
) -> Result<Vec<Function>, EmbedError> {
    let (added, context) = (added.into_iter().collect(), address(LIBRARY_CTX));
    // SAFETY: as promised to this function.
    unsafe {
        Loaded::new(added, |name: &String| address(name), context, Box::new(OfOwner), Arc::new(owner))?.into_functions()
    }
}

/// As [`functions_at`], for a module of the runtime, of kind `jit`, which tells metadata and docs. Its code finds functions of the modules that it
/// imports.
///
/// # Safety
/// As [`functions_at`].
///
/// # Errors
/// As [`functions_at`].
#[cfg(not(feature = "external-runtime"))]
pub unsafe fn module_at(
    added: impl IntoIterator<Item = Added<String>>,
    address: impl Fn(&str) -> Option<*const u8>,
    owner: impl Any + Send + Sync,
) -> Result<tvm_ffi_runtime::Module, EmbedError> {
    let (added, context) = (added.into_iter().collect(), address(LIBRARY_CTX));
    // SAFETY: as promised to this function.
    Ok(unsafe {
        Loaded::new(added, |name: &String| address(name), context, Box::new(OfOwner), Arc::new(owner))?.into_module()
    })
}
