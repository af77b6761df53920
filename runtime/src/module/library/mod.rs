//! Library modules: functions `__tvm_ffi_<name>` of a shared library (`dynamic`) or of the system library (`system`), with the
//! modules that `__tvm_ffi__library_bin` carries (`embedded`) and the variables that are filled at load (`context`).
//! Header: namespace `symbol` of `extra/module.h`.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use super::{Module, ModuleImpl, PropertyMask};
use crate::abi::TVMFFISafeCallType;
use crate::abi::symbol::{DOC, FUNCTION, LIBRARY_BIN, LIBRARY_CTX, METADATA};
use crate::error::{Result, runtime_error};
use crate::function::Function;

mod context;
mod dynamic;
mod embedded;
mod system;

use context::Context;
pub(crate) use context::register as register_context_symbol;
pub(crate) use system::register as register_system_symbol;
pub(super) use system::system_lib;

/// The address of code or data.
#[derive(Copy, Clone, PartialEq, Eq)]
struct Address(NonNull<c_void>);

// SAFETY: an address is the same on every thread; whoever uses it says why it may.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

impl Address {
    fn new(address: *mut c_void) -> Option<Self> {
        NonNull::new(address).map(Self)
    }

    fn as_ptr<T>(self) -> *mut T {
        self.0.as_ptr().cast()
    }
}

/// The symbols of a library, which is open for as long as this lives.
trait Symbols: Send + Sync {
    /// The address of a symbol.
    fn symbol(&self, name: &str) -> Option<Address>;

    /// The symbol of the function called `name`.
    fn function(&self, name: &str) -> Option<Address> {
        self.symbol(&format!("{FUNCTION}{name}"))
    }

    /// The symbol of what describes the function called `name`.
    fn description(&self, before: &str, name: &str) -> Option<Address> {
        self.symbol(&format!("{before}{name}"))
    }
}

/// The module of a shared library.
pub(super) fn open(path: &str) -> Result<Module> {
    load(Arc::new(dynamic::open(path)?))
}

/// The module of a library: the root of the tree of modules that it carries, or else the library itself.
fn load(symbols: Arc<dyn Symbols>) -> Result<Module> {
    context::fill_variables(&*symbols);
    let library = library_module(symbols.clone());
    match symbols.symbol(LIBRARY_BIN) {
        Some(start) => embedded::load(start, &symbols, &library),
        None => {
            library.enter();
            Ok(library.module)
        }
    }
}

/// A library's module before `__tvm_ffi__library_ctx` knows it.
struct NewModule {
    module: Module,
    context: Arc<Context>,
    variable: Option<Address>,
}

impl NewModule {
    /// Fills `__tvm_ffi__library_ctx`.
    fn enter(&self) {
        if let Some(variable) = self.variable {
            // SAFETY: the symbol is a pointer variable by the header; its library is open for as long as the context lives.
            unsafe { Context::enter(&self.context, variable, &self.module) };
        }
    }
}

fn library_module(symbols: Arc<dyn Symbols>) -> NewModule {
    let variable = symbols.symbol(LIBRARY_CTX);
    let context = Arc::new(Context::new(symbols.clone()));
    let module = Module::from_impl(LibraryModule { context: context.clone(), symbols });
    context.set_module(&module);
    NewModule { module, context, variable }
}

struct LibraryModule {
    context: Arc<Context>,
    symbols: Arc<dyn Symbols>,
}

impl LibraryModule {
    /// Calls what describes a function: it takes nothing and returns a string.
    fn describe(&self, before: &str, name: &str) -> Result<Option<String>> {
        let Some(address) = self.symbols.description(before, name) else {
            return Ok(None);
        };
        // The string is copied: its own code may lie in the library.
        self.callable(address)?.call(())?.cast().map(Some)
    }

    /// A function that keeps the module, and with it the library: its code may look for imports.
    fn callable(&self, address: Address) -> Result<Function> {
        let module = self.context.module().ok_or_else(|| runtime_error("the library's module is being destroyed"))?;
        // SAFETY: by the header, symbols of functions and of their descriptions have this type.
        let safe_call = unsafe { std::mem::transmute::<*mut c_void, TVMFFISafeCallType>(address.as_ptr()) };
        // SAFETY: whoever loads a library answers for its functions; the module keeps it open.
        Ok(unsafe { Function::from_code(safe_call, module) })
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
        // Upstream gives these, too, and the process ends when they are called.
        if [LIBRARY_BIN, LIBRARY_CTX].iter().any(|data| data.strip_prefix(FUNCTION) == Some(name)) {
            return Ok(None);
        }
        self.symbols.function(name).map(|address| self.callable(address)).transpose()
    }

    fn function_metadata(&self, name: &str) -> Result<Option<String>> {
        self.describe(METADATA, name)
    }

    fn function_doc(&self, name: &str) -> Result<Option<String>> {
        self.describe(DOC, name)
    }
}
