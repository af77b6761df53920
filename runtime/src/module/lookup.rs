//! What code of a module finds in its imports: `TVMFFIEnvModLookupFromImports`, whose results are kept here.

use std::sync::{MutexGuard, PoisonError};

use super::imports;
use super::object::{Lookups, Module};
use crate::error::{Result, runtime_error};
use crate::function::Function;
use crate::heap::{AsObject, WeakRef};
use crate::registry::{find, loads_code};

impl Module {
    /// The function of that name for code of this module: of the imported modules and theirs, or else the global one. The module keeps it,
    /// and gives the same one from then on.
    ///
    /// # Errors
    /// `RuntimeError` where there is none, or where the name is that of a global function that loads code; what an implementation raises.
    pub fn lookup_from_imports(&self, name: &str) -> Result<Function> {
        if loads_code(name.as_bytes()) {
            return Err(runtime_error(&format!("`{name}` loads code: call `Module::load_from_file`")));
        }
        self.lookup_for_code(name)
    }

    /// As [`Module::lookup_from_imports`], for C code, which gets functions that load code, too.
    pub(crate) fn lookup_for_code(&self, name: &str) -> Result<Function> {
        let newer = {
            let lookups = self.lookups();
            if let Some(function) = lookups.found.get(name) {
                return Ok(function.clone());
            }
            lookups.newer.as_ref().and_then(WeakRef::upgrade)
        };
        let newer: Option<Module> = newer.and_then(|newer| newer.downcast().ok());
        // Without the lock, since an import may look something up itself.
        let imported = newer.as_ref().unwrap_or(self).imports();
        let found = imports::first_of(imported, true, |module| module.get_function(name))?;
        let function = found.or_else(|| find(name.as_bytes())).ok_or_else(|| {
            runtime_error(&format!("Cannot find function {name} in the imported modules or global registry."))
        })?;
        // Whoever was first is right: its address may be in use.
        Ok(self.lookups().found.entry(name.to_owned()).or_insert(function).clone())
    }

    /// From now on code finds what `newer` imports, for as long as that lives.
    pub(super) fn look_through(&self, newer: &Module) {
        let mut lookups = self.lookups();
        let found = std::mem::take(&mut lookups.found);
        lookups.retired.extend(found.into_values());
        lookups.newer = Some(newer.as_object().downgrade());
    }

    fn lookups(&self) -> MutexGuard<'_, Lookups> {
        self.body().lookups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
