//! The module kind `library`.

use std::ffi::c_void;
use std::sync::Arc;

use super::super::implementation::ModuleImpl;
use super::super::object::Module;
use super::super::property::PropertyMask;
use super::context::Context;
use super::symbols::{Address, SymbolLookup};
use crate::abi::TVMFFISafeCallType;
use crate::abi::symbol::{DOC, FUNCTION, LIBRARY_BIN, LIBRARY_CTX, METADATA};
use crate::error::{Result, runtime_error};
use crate::function::Function;

/// A library's module before `__tvm_ffi__library_ctx` points at it.
pub(super) struct NewModule {
    pub(super) module: Module,
    context: Arc<Context>,
    variable: Option<Address>,
}

impl NewModule {
    /// Points `__tvm_ffi__library_ctx` at the module.
    pub(super) fn enter(&self) {
        if let Some(variable) = self.variable {
            // SAFETY: by the header, the symbol is a pointer variable. The context keeps its library open.
            unsafe { Context::enter(&self.context, variable, &self.module) };
        }
    }
}

/// Makes the module of the library that has these symbols.
pub(super) fn library_module(symbols: Arc<dyn SymbolLookup>) -> NewModule {
    let variable = symbols.symbol(LIBRARY_CTX);
    let context = Arc::new(Context::new(symbols.clone()));
    let module = Module::from_impl(LibraryModule { context: context.clone(), symbols });
    context.set_module(&module);
    NewModule { module, context, variable }
}

struct LibraryModule {
    context: Arc<Context>,
    symbols: Arc<dyn SymbolLookup>,
}

impl LibraryModule {
    /// The code of a function.
    fn function(&self, name: &str) -> Option<Address> {
        // These symbols are data. Upstream returns them as functions, and calling one crashes the process.
        if [LIBRARY_BIN, LIBRARY_CTX].iter().any(|data| data.strip_prefix(FUNCTION) == Some(name)) {
            return None;
        }
        self.symbols.function(name)
    }

    /// Calls the symbol that describes a function: it takes no arguments and returns a string.
    fn describe(&self, before: &str, name: &str) -> Result<Option<String>> {
        let Some(address) = self.symbols.description(before, name) else {
            return Ok(None);
        };
        // Copy the string, since its deleter may be code of the library.
        self.callable(address)?.call(())?.cast().map(Some)
    }

    /// Makes a function that keeps the module and its library alive, since its code may look up imports.
    fn callable(&self, address: Address) -> Result<Function> {
        let module = self.context.module().ok_or_else(|| runtime_error("the library's module is being destroyed"))?;
        // SAFETY: by the header, symbols of functions and of their descriptions have this type.
        let safe_call = unsafe { std::mem::transmute::<*mut c_void, TVMFFISafeCallType>(address.as_ptr()) };
        // SAFETY: the code that loads a library is responsible for its functions; the module keeps the library open.
        Ok(unsafe { Function::from_symbol(safe_call, module) })
    }
}

impl ModuleImpl for LibraryModule {
    fn kind(&self) -> &str {
        "library"
    }

    fn property_mask(&self) -> PropertyMask {
        PropertyMask::BINARY_SERIALIZABLE | PropertyMask::RUNNABLE
    }

    fn get_function(&self, name: &str) -> Result<Option<Function>> {
        self.function(name).map(|address| self.callable(address)).transpose()
    }

    fn implements_function(&self, name: &str) -> Result<bool> {
        Ok(self.function(name).is_some())
    }

    unsafe fn unload_when_unused(&self) -> bool {
        // SAFETY: promised by the caller.
        unsafe { self.symbols.close_when_unused() }
    }

    fn function_metadata(&self, name: &str) -> Result<Option<String>> {
        self.describe(METADATA, name)
    }

    fn function_doc(&self, name: &str) -> Result<Option<String>> {
        self.describe(DOC, name)
    }
}
