//! The system library: symbols that code linked into this process registers at start-up, for where there is no `dlopen`.
//! Header: `TVMFFIEnvModRegisterSystemLibSymbol` of `extra/c_env_api.h`.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::ThreadId;

use super::super::object::Module;
use super::open::load;
use super::symbols::{Address, Symbols};
use crate::abi::symbol::FUNCTION;
use crate::error::{Result, runtime_error};

static SYMBOLS: RwLock<BTreeMap<String, Address>> = RwLock::new(BTreeMap::new());

/// Registers a symbol; a later one of the same name wins, and NULL takes it back.
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

/// The registered symbols, as those of one prefix see them: with the prefix first, then without.
struct SystemLibrary {
    prefix: String,
}

impl Symbols for SystemLibrary {
    fn symbol(&self, name: &str) -> Option<Address> {
        registered(&format!("{}{name}", self.prefix)).or_else(|| registered(name))
    }

    fn function(&self, name: &str) -> Option<Address> {
        let prefix = &self.prefix;
        registered(&format!("{FUNCTION}{prefix}{name}")).or_else(|| registered(&format!("{FUNCTION}{name}")))
    }

    fn description(&self, before: &str, name: &str) -> Option<Address> {
        // Where the prefix of a function is, too, and then where upstream has it.
        registered(&format!("{before}{}{name}", self.prefix)).or_else(|| self.symbol(&format!("{before}{name}")))
    }
}

/// The one module of a prefix, once it is loaded.
#[derive(Default)]
struct Slot {
    module: Mutex<Option<Module>>,
    /// Who loads it now.
    loading: Mutex<Option<ThreadId>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Module {
    /// The module of the functions that [`TVMFFIEnvModRegisterSystemLibSymbol`](crate::capi::TVMFFIEnvModRegisterSystemLibSymbol) has
    /// registered under names that begin with `__tvm_ffi_`, then maybe `prefix`. There is one for each prefix in the process.
    ///
    /// # Errors
    /// As for a shared library: where the registered `__tvm_ffi__library_bin` is broken, or needs a loader that isn't there.
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
        // It would wait for itself.
        return Err(runtime_error(&format!("The system library of prefix `{prefix}` is asked for by what loads it")));
    }
    // Only this prefix waits while a loader runs, which may ask for others.
    let mut module = lock(&slot.module);
    if let Some(module) = &*module {
        return Ok(module.clone());
    }
    *lock(&slot.loading) = Some(this);
    let loaded = load(Arc::new(SystemLibrary { prefix: prefix.to_owned() }));
    *lock(&slot.loading) = None;
    Ok(module.insert(loaded?).clone())
}
