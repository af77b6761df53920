//! Variables of a library that are filled at load: `__tvm_ffi__library_ctx` with the address of its module, and context symbols.
//! Header: `TVMFFIEnvModRegisterContextSymbol` of `extra/c_env_api.h`, `symbol::tvm_ffi_library_ctx` of `extra/module.h`.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

use super::{Address, Module, Symbols};
use crate::error::{Result, runtime_error};
use crate::object::{AsObject, WeakRef};

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
/// A library that is loaded twice has two modules and one variable, which points at the newer of them. Code of the older one follows it,
/// so it has to live as long as that: an older module keeps the newest alive, and the newest keeps none.
pub(super) struct Context {
    module: OnceLock<WeakRef>,
    variable: OnceLock<Address>,
    newest: Mutex<Option<Arc<Newest>>>,
    /// Dropped last: the variable is in the library.
    _symbols: Arc<dyn Symbols>,
}

/// The newest module of a library, kept by all older ones together.
type Newest = Mutex<Module>;

/// What a variable points at: the newest module's context, and what older modules keep.
#[derive(Default)]
struct Entered {
    context: Weak<Context>,
    kept: Weak<Newest>,
}

/// By the address of the variable.
static ENTERED: Mutex<BTreeMap<usize, Entered>> = Mutex::new(BTreeMap::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    pub(super) fn new(symbols: Arc<dyn Symbols>) -> Self {
        Self { module: OnceLock::new(), variable: OnceLock::new(), newest: Mutex::new(None), _symbols: symbols }
    }

    /// States whose context this is, once.
    pub(super) fn set_module(&self, module: &Module) {
        self.module.get_or_init(|| module.as_object().downgrade());
    }

    /// The module, unless it is being destroyed.
    pub(super) fn module(&self) -> Option<Module> {
        self.module.get()?.upgrade()?.downcast().ok()
    }

    /// Points the variable at the module, which is now the newest.
    ///
    /// # Safety
    /// `variable` must be a pointer variable of the library that the context keeps open.
    pub(super) unsafe fn enter(context: &Arc<Self>, variable: Address, module: &Module) -> Result<()> {
        context.variable.set(variable).map_err(|_| runtime_error("the library's module has its variable already"))?;
        let before;
        {
            let mut entered = lock(&ENTERED);
            let entry = entered.entry(variable.0.addr().get()).or_default();
            let older = entry.context.upgrade();
            let kept = entry.kept.upgrade();
            before = kept.as_ref().map(|kept| std::mem::replace(&mut *lock(kept), module.clone()));
            if let Some(older) = &older {
                let kept = kept.unwrap_or_else(|| Arc::new(Mutex::new(module.clone())));
                entry.kept = Arc::downgrade(&kept);
                *lock(&older.newest) = Some(kept);
            }
            entry.context = Arc::downgrade(context);
            // SAFETY: promised by the caller.
            unsafe { store(variable, module.as_object().as_ptr().cast()) };
            // Its last reference may be this one.
            drop(entered);
            drop(older);
        }
        drop(before);
        Ok(())
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let Some(&variable) = self.variable.get() else {
            return;
        };
        let mut entered = lock(&ENTERED);
        let key = variable.0.addr().get();
        // Only the newest of a library's modules has the entry.
        if entered.get(&key).is_some_and(|entry| std::ptr::eq(entry.context.as_ptr(), self)) {
            entered.remove(&key);
            // SAFETY: as stated to `enter`; the library is open until this is gone.
            unsafe { store(variable, std::ptr::null_mut()) };
        }
    }
}
