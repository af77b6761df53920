//! Variables of a library that are filled at load: `__tvm_ffi__library_ctx` with the address of its module, and context symbols.
//! Header: `TVMFFIEnvModRegisterContextSymbol` of `extra/c_env_api.h`, `symbol::tvm_ffi_library_ctx` of `extra/module.h`.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};

use super::super::object::Module;
use super::symbols::{Address, Symbols};
use crate::heap::{AsObject, WeakRef};

static SYMBOLS: RwLock<BTreeMap<String, Address>> = RwLock::new(BTreeMap::new());

/// Registers a value for the variables of that name in libraries that are loaded from now on.
pub(crate) fn register(name: &str, value: *mut c_void) {
    let mut symbols = SYMBOLS.write().unwrap_or_else(PoisonError::into_inner);
    match Address::new(value) {
        Some(value) => symbols.insert(name.to_owned(), value),
        None => symbols.remove(name),
    };
}

/// Fills the variables that context symbols name.
pub(super) fn fill_variables(library: &dyn Symbols) {
    let symbols = SYMBOLS.read().unwrap_or_else(PoisonError::into_inner);
    for (name, value) in &*symbols {
        if let Some(variable) = library.symbol(name) {
            // SAFETY: by the header, a library's symbol of that name is a pointer variable.
            unsafe { store(variable, value.as_ptr()) };
        }
    }
}

/// # Safety
/// `variable` must be a pointer variable that nothing but code of its library, and this module, uses.
unsafe fn store(variable: Address, value: *mut c_void) {
    // SAFETY: promised by the caller. Atomic, because code of the library may read it at the same time.
    unsafe { AtomicPtr::from_ptr(variable.as_ptr::<*mut c_void>()) }.store(value, Ordering::Release);
}

/// The part of one module in the one `__tvm_ffi__library_ctx` of its library.
///
/// A library that is loaded twice has two modules and one variable, which code of both reads at any time. So it points at the first of them
/// for as long as one is there, and the first finds what the newest imports (upstream points it at the newest, even when that is gone).
pub(super) struct Context {
    module: OnceLock<WeakRef>,
    variable: OnceLock<Address>,
    /// What the variable points at, if not at this context's own module.
    first: OnceLock<Module>,
    /// Dropped last: the variable is in the library.
    _symbols: Arc<dyn Symbols>,
}

/// By the address of the variable: the context of the module that it points at.
static FIRST: Mutex<BTreeMap<usize, Weak<Context>>> = Mutex::new(BTreeMap::new());

impl Context {
    pub(super) fn new(symbols: Arc<dyn Symbols>) -> Self {
        Self { module: OnceLock::new(), variable: OnceLock::new(), first: OnceLock::new(), _symbols: symbols }
    }

    /// States whose context this is, once.
    pub(super) fn set_module(&self, module: &Module) {
        self.module.get_or_init(|| module.as_object().downgrade());
    }

    /// The module, unless it is being destroyed.
    pub(super) fn module(&self) -> Option<Module> {
        self.module.get()?.upgrade()?.downcast().ok()
    }

    /// Points the variable at the module, or lets the module that it points at look through this one.
    ///
    /// # Safety
    /// `variable` must be a pointer variable of the library that the context keeps open.
    pub(super) unsafe fn enter(context: &Arc<Self>, variable: Address, module: &Module) {
        let key = variable.0.addr().get();
        // Dropped after the lock, in case it is the last reference.
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
        // Unless another module came while this one was being destroyed.
        if contexts.get(&key).is_some_and(|first| std::ptr::eq(first.as_ptr(), self)) {
            contexts.remove(&key);
            // SAFETY: as stated to `enter`; the library is open until this is gone.
            unsafe { store(variable, std::ptr::null_mut()) };
        }
    }
}
