//! The system library: symbols that code linked into this process registers at start-up. It is for platforms without
//! `dlopen`. Header: `TVMFFIEnvModRegisterSystemLibSymbol` of `extra/c_env_api.h`.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::ThreadId;

use super::super::object::Module;
use super::open::load;
use super::symbols::{Address, SymbolLookup};
use crate::abi::symbol::FUNCTION;
use crate::error::{Result, runtime_error};

static SYMBOLS: RwLock<BTreeMap<String, Address>> = RwLock::new(BTreeMap::new());

/// Registers a symbol. A later address for the same name replaces the earlier one, and NULL removes it.
pub(crate) fn register(name: &str, address: *mut c_void) {
    let mut symbols = SYMBOLS.write().unwrap_or_else(PoisonError::into_inner);
    match Address::new(address) {
        Some(address) => symbols.insert(name.to_owned(), address),
        None => symbols.remove(name),
    };
}

fn registered(name: &str) -> Option<Address> {
    SYMBOLS.read().unwrap_or_else(PoisonError::into_inner).get(name).copied()
}

/// The registered symbols as seen with a prefix: looks up a name with the prefix first, then without.
struct SystemLibrary {
    prefix: String,
}

impl SymbolLookup for SystemLibrary {
    fn symbol(&self, name: &str) -> Option<Address> {
        registered(&format!("{}{name}", self.prefix)).or_else(|| registered(name))
    }

    fn function(&self, name: &str) -> Option<Address> {
        let prefix = &self.prefix;
        registered(&format!("{FUNCTION}{prefix}{name}")).or_else(|| registered(&format!("{FUNCTION}{name}")))
    }

    fn description(&self, before: &str, name: &str) -> Option<Address> {
        // First with the prefix before the function's name, as in `function`. Then with it before the whole symbol, as
        // upstream.
        registered(&format!("{before}{}{name}", self.prefix)).or_else(|| self.symbol(&format!("{before}{name}")))
    }
}

/// The one module of a prefix, once it is loaded.
#[derive(Default)]
struct Slot {
    module: Mutex<Option<Module>>,
    /// The thread that is loading it.
    loading: Mutex<Option<ThreadId>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Module {
    /// The module of the functions that
    /// [`TVMFFIEnvModRegisterSystemLibSymbol`](crate::capi::TVMFFIEnvModRegisterSystemLibSymbol) has registered under
    /// names that begin with `__tvm_ffi_`, optionally followed by `prefix`. The process has one such module per prefix.
    ///
    /// # Errors
    /// As for a shared library: if the registered `__tvm_ffi__library_bin` is malformed, or needs a loader that isn't
    /// registered.
    pub fn system_lib(prefix: &str) -> Result<Self> {
        system_lib(prefix)
    }
}

/// The one module of a prefix.
fn system_lib(prefix: &str) -> Result<Module> {
    static SLOTS: Mutex<BTreeMap<String, Arc<Slot>>> = Mutex::new(BTreeMap::new());
    let slot = lock(&SLOTS).entry(prefix.to_owned()).or_default().clone();
    let this = std::thread::current().id();
    if *lock(&slot.loading) == Some(this) {
        // Waiting for the lock below would be a deadlock.
        return Err(runtime_error(&format!(
            "Loading the system library of prefix `{prefix}` asks for that library itself"
        )));
    }
    // Lock only this prefix while a loader runs, since a loader may load the system library of another prefix.
    let mut module = lock(&slot.module);
    if let Some(module) = &*module {
        return Ok(module.clone());
    }
    *lock(&slot.loading) = Some(this);
    let loaded = load(Arc::new(SystemLibrary { prefix: prefix.to_owned() }));
    *lock(&slot.loading) = None;
    Ok(module.insert(loaded?).clone())
}
