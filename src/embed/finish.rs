//! Turns code that the caller generated and loaded into runtime modules and functions.

use std::any::Any;
use std::sync::Arc;

use tvm_ffi_runtime::Function;
use tvm_ffi_runtime::abi::TVMFFISafeCallType;
use tvm_ffi_runtime::abi::symbol::LIBRARY_CTX;

use super::error::{EmbedError, undefined};
use super::library::{Added, Wrapper};
use crate::engine::{Code, CodeAddresses, KeepAlive, Memory};
use crate::globals::register_globals;

/// Loaded code that contains the wrappers.
pub(super) struct Loaded {
    code: Arc<Code>,
    wrappers: Vec<Wrapper<TVMFFISafeCallType>>,
}

impl Loaded {
    /// Takes ownership of code. `address` returns the addresses of the functions in `added`, by the backend's names
    /// for them.
    ///
    /// # Safety
    /// The addresses belong to the added functions and to the variable for the library's context. They stay valid
    /// while `memory` and `owner` live, and only these free them.
    pub(super) unsafe fn new<F>(
        added: Vec<Added<F>>,
        address: impl Fn(&F) -> Option<*const u8>,
        context: Option<*const u8>,
        memory: Box<dyn Memory>,
        owner: KeepAlive,
    ) -> Result<Self, EmbedError> {
        let mut symbols = CodeAddresses::default();
        symbols.variables.extend(context.map(|at| (LIBRARY_CTX.into(), at.expose_provenance())));
        let mut wrappers = Vec::new();
        for Added { functions, destructors, .. } in added {
            for destructor in destructors {
                let at = address(&destructor).ok_or_else(|| undefined("a destructor"))?;
                symbols.destructors.push(at.expose_provenance());
            }
            for Wrapper { id, signature, launches } in functions {
                let at = address(&id).filter(|at| !at.is_null()).ok_or_else(|| undefined(&signature.symbol()))?;
                // SAFETY: lowering exports wrappers with the prototype of `TVMFFISafeCallType` (tvm/ffi/c_api.h), and
                // the address is not null.
                let id = unsafe { std::mem::transmute::<*const u8, TVMFFISafeCallType>(at) };
                wrappers.push(Wrapper { id, signature, launches });
            }
        }
        // if the runtime doesn't accept the function, launches on the CPU use one thread
        let _ = register_globals();
        let code = Code::adopt(symbols, memory, vec![owner]);
        // SAFETY: lowering generates destructors that only release what the module's functions have got from the
        // runtime.
        unsafe { code.run_destructors_on_drop() };
        Ok(Loaded { code, wrappers })
    }

    /// A module of kind `jit` that owns the code.
    ///
    /// # Safety
    /// The kernels fulfil their signatures.
    #[cfg(not(feature = "external-runtime"))]
    pub(super) unsafe fn into_module(self) -> tvm_ffi_runtime::Module {
        let function = |Wrapper { id, signature, launches }: Wrapper<_>| crate::engine::ModuleFunction {
            safe_call: id,
            signature,
            launches,
        };
        // SAFETY: the caller promises the same, and this is the only owner of the code.
        unsafe { crate::engine::module_of_code(self.code, self.wrappers.into_iter().map(function)) }
    }

    /// The functions, in order. With the bundled runtime they own a module, which code with state needs.
    ///
    /// # Safety
    /// The kernels fulfil their signatures.
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
            // SAFETY: each function owns the code, so the address is valid as long as the function can be called.
            let function = |w: &Wrapper<_>| unsafe { Function::from_code(w.id, Arc::clone(&self.code)) };
            Ok(self.wrappers.iter().map(function).collect())
        }
    }
}

/// Memory that belongs to the owner.
struct OfOwner;

impl Memory for OfOwner {
    fn contains(&self, _: usize) -> bool {
        false
    }
}

/// Makes functions of wrappers that you have loaded with your own loader: an LLJIT, an `ExecutionEngine`, or an
/// in-memory linker. `address` returns the address of a symbol. It is called for each wrapper's symbol
/// ([`Signature::symbol`](crate::Signature::symbol)) and for functions that run when the code is unloaded. It is also
/// called for `__tvm_ffi__library_ctx`, which a module without calls of imported functions lacks. The code must stay
/// loaded as long as `owner` lives; `owner` is dropped with the last function.
///
/// # Safety
/// `address` returns the addresses of the symbols in one load of the module, and they are valid as long as `owner`
/// lives. Each kernel fulfils its contract, as for [`Engine::compile`](crate::Engine::compile).
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

/// As [`functions_at`], but returns a runtime module of kind `jit`, which exposes metadata and docs. Its code can
/// call functions of the modules that it imports.
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
