//! Lookup of imported functions by a module's code: `TVMFFIEnvModLookupFromImports`. The module keeps the results.

use std::sync::{MutexGuard, PoisonError};

use super::imports;
use super::layout::Lookups;
use super::object::Module;
use crate::error::{Result, runtime_error};
use crate::function::Function;
use crate::heap::{AsObject, WeakRef};
use crate::registry::{find, loads_code};

impl Module {
    /// Looks up a function for this module's code: first in the imported modules and their imports, then among the
    /// global functions. The module keeps the function, and returns the same one from then on.
    ///
    /// # Errors
    /// `RuntimeError` if no function has the name, or if it names a global function that loads code; any error that an
    /// implementation raises.
    pub fn lookup_from_imports(&self, name: &str) -> Result<Function> {
        if loads_code(name.as_bytes()) {
            return Err(runtime_error(&format!("`{name}` loads code: call `Module::load_from_file`")));
        }
        self.lookup_for_code(name)
    }

    /// As [`Module::lookup_from_imports`], for C code. It may also get functions that load code.
    pub(crate) fn lookup_for_code(&self, name: &str) -> Result<Function> {
        let newer = match self.lookups() {
            Some(lookups) => match lookups.found.get(name) {
                Some(function) => return Ok(function.clone()),
                None => lookups.newer.as_ref().and_then(WeakRef::upgrade),
            },
            None => match self.keep(name, None)? {
                Some(function) => return Ok(function),
                None => None,
            },
        };
        let newer: Option<Module> = newer.and_then(|newer| newer.downcast().ok());
        // Search without the lock, since an import's `get_function` may look up a function itself.
        let imported = newer.as_ref().unwrap_or(self).imports();
        let found = imports::first_of(imported, true, |module| module.get_function(name))?;
        let function = found.or_else(|| find(name.as_bytes())).ok_or_else(|| {
            runtime_error(&format!("Cannot find function {name} in the imported modules or global registry."))
        })?;
        // If another thread was faster, keep its function: code may already use its address.
        match self.lookups() {
            Some(mut lookups) => Ok(lookups.found.entry(name.to_owned()).or_insert(function).clone()),
            None => Ok(self.keep(name, Some(&function))?.unwrap_or(function)),
        }
    }

    /// As [`CxxModule::keep_function`](super::cxx::CxxModule::keep_function).
    fn keep(&self, name: &str, function: Option<&Function>) -> Result<Option<Function>> {
        self.as_cxx().map_or(Ok(None), |module| module.keep_function(name, function))
    }

    /// Makes lookups search the imports of `newer` instead, for as long as that module lives.
    pub(super) fn look_through(&self, newer: &Module) {
        let Some(mut lookups) = self.lookups() else { return };
        let found = std::mem::take(&mut lookups.found);
        lookups.retired.extend(found.into_values());
        lookups.newer = Some(newer.as_object().downgrade());
    }

    /// `None` for a C++ module, which has its own.
    fn lookups(&self) -> Option<MutexGuard<'_, Lookups>> {
        Some(self.body()?.lookups.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
