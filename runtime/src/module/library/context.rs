//! Variables of a library that are set at load: `__tvm_ffi__library_ctx`, to the address of the library's module, and
//! context symbols. Header: `TVMFFIEnvModRegisterContextSymbol` of `extra/c_env_api.h`, `symbol::tvm_ffi_library_ctx`
//! of `extra/module.h`.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};

use super::super::object::Module;
use super::symbols::{Address, SymbolLookup};
use crate::heap::{AsObject, WeakRef};

static SYMBOLS: RwLock<BTreeMap<String, Address>> = RwLock::new(BTreeMap::new());

/// Registers the value of the context symbol `name` for libraries that are loaded later. NULL removes it.
pub(crate) fn register(name: &str, value: *mut c_void) {
    let mut symbols = SYMBOLS.write().unwrap_or_else(PoisonError::into_inner);
    match Address::new(value) {
        Some(value) => symbols.insert(name.to_owned(), value),
        None => symbols.remove(name),
    };
}

/// The context symbols and their values.
pub(in crate::module) fn symbols() -> Vec<(String, *mut c_void)> {
    let symbols = SYMBOLS.read().unwrap_or_else(PoisonError::into_inner);
    symbols.iter().map(|(name, value)| (name.clone(), value.as_ptr())).collect()
}

/// Sets the library's variables that have the name of a context symbol.
pub(super) fn fill_variables(library: &dyn SymbolLookup) {
    let symbols = SYMBOLS.read().unwrap_or_else(PoisonError::into_inner);
    for (name, value) in &*symbols {
        if let Some(variable) = library.symbol(name) {
            // SAFETY: by the header, a library's symbol of that name is a pointer variable.
            unsafe { store(variable, value.as_ptr()) };
        }
    }
}

/// # Safety
/// `variable` must be a pointer variable, and only its library's code and this file may use it.
unsafe fn store(variable: Address, value: *mut c_void) {
    // SAFETY: promised by the caller. The store is atomic because the library's code may read at the same time.
    unsafe { AtomicPtr::from_ptr(variable.as_ptr::<*mut c_void>()) }.store(value, Ordering::Release);
}

/// One module's share in the `__tvm_ffi__library_ctx` of its library.
///
/// A library that is loaded twice has two modules but one variable. Code of both modules may read it at any time. So
/// the variable points at the first module for as long as that lives, and lookups by the first search the imports of
/// the newest. Upstream points the variable at the newest, even after that is destroyed.
pub(super) struct Context {
    module: OnceLock<WeakRef>,
    variable: OnceLock<Address>,
    /// The module that the variable points at, unless it is this context's own.
    first: OnceLock<Module>,
    /// Dropped last: the variable is in the library.
    _symbols: Arc<dyn SymbolLookup>,
}

/// Maps the address of a variable to the context of the module that it points at.
static FIRST: Mutex<BTreeMap<usize, Weak<Context>>> = Mutex::new(BTreeMap::new());

impl Context {
    pub(super) fn new(symbols: Arc<dyn SymbolLookup>) -> Self {
        Self { module: OnceLock::new(), variable: OnceLock::new(), first: OnceLock::new(), _symbols: symbols }
    }

    /// Sets the module that this context belongs to. Later calls have no effect.
    pub(super) fn set_module(&self, module: &Module) {
        self.module.get_or_init(|| module.as_object().downgrade());
    }

    /// The module, unless it is being destroyed.
    pub(super) fn module(&self) -> Option<Module> {
        self.module.get()?.upgrade()?.downcast().ok()
    }

    /// Points the variable at the module. If it already points at one, makes that module search this one's imports.
    ///
    /// # Safety
    /// `variable` must be a pointer variable of the library that the context keeps open.
    pub(super) unsafe fn enter(context: &Arc<Self>, variable: Address, module: &Module) {
        let key = variable.0.addr().get();
        // Declared before the lock guard to drop after it, in case it is the last reference.
        let holder;
        let mut contexts = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
        holder = contexts.get(&key).and_then(Weak::upgrade);
        if let Some(first) = holder.as_ref().and_then(|holder| holder.module()) {
            first.look_through(module);
            context.first.get_or_init(|| first);
            return;
        }
        context.variable.get_or_init(|| variable);
        contexts.insert(key, Arc::downgrade(context));
        // SAFETY: promised by the caller.
        unsafe { store(variable, module.as_object().as_ptr().cast()) };
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let Some(&variable) = self.variable.get() else {
            return;
        };
        let mut contexts = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
        let key = variable.0.addr().get();
        // Skip this if the variable was pointed at another module while this one was being destroyed.
        if contexts.get(&key).is_some_and(|first| std::ptr::eq(first.as_ptr(), self)) {
            contexts.remove(&key);
            // SAFETY: by the contract of `enter`, and `_symbols` keeps the library open until it is dropped after this.
            unsafe { store(variable, std::ptr::null_mut()) };
        }
    }
}
