//! The graph of imports: never a cycle, and walked without one stack frame for every level.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};
use std::sync::{Mutex, PoisonError};

use super::object::Module;
use crate::error::{Result, runtime_error};
use crate::function::Function;
use crate::heap::release;

/// Held while an import is checked and added: two threads that import each other's module would else make a cycle.
static ADDING: Mutex<()> = Mutex::new(());

impl Module {
    /// The imported modules, in the order of their import.
    pub fn imports(&self) -> Vec<Module> {
        self.body().imports.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Imports a module, after those that are imported already.
    ///
    /// # Errors
    /// `RuntimeError` where `other` is this module, or imports it, maybe through others.
    pub fn import_module(&self, other: &Module) -> Result<()> {
        // Dropped after the lock: a destructor may import.
        let mut seen: HashMap<usize, Module> = HashMap::new();
        let adding = ADDING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut waiting = vec![other.clone()];
        while let Some(module) = waiting.pop() {
            // What was seen before is dropped here, which is not its last reference.
            if let Entry::Vacant(place) = seen.entry(module.address()) {
                waiting.extend(module.imports());
                place.insert(module);
            }
        }
        let is_cycle = seen.contains_key(&self.address());
        if !is_cycle {
            self.push_import(other.clone());
        }
        // An error is made without the lock: its allocator may be somebody's code.
        drop(adding);
        if is_cycle { Err(runtime_error("Cyclic dependency detected during import")) } else { Ok(()) }
    }

    /// Takes back all imports. Functions that were looked up stay.
    pub fn clear_imports(&self) {
        let old = std::mem::take(&mut *self.body().imports.write().unwrap_or_else(PoisonError::into_inner));
        // After the lock, and however long a chain of imports is.
        release(old.into_iter().map(Into::into));
    }

    /// The function of that name, here or, if `query_imports`, in the imported modules and theirs, in depth-first order.
    ///
    /// # Errors
    /// The error that an implementation raises.
    pub fn get_function_from(&self, name: &str, query_imports: bool) -> Result<Option<Function>> {
        self.first_of(query_imports, |module| module.get_function(name))
    }

    /// A query whether there is a function of that name, looked for as by [`get_function_from`](Self::get_function_from).
    ///
    /// # Errors
    /// The error that an implementation raises.
    pub fn implements_function(&self, name: &str, query_imports: bool) -> Result<bool> {
        let found = self
            .first_of(query_imports, |module| Ok(module.implementation().implements_function(name)?.then_some(())))?;
        Ok(found.is_some())
    }

    /// The metadata of a function, a JSON text, looked for as by [`get_function_from`](Self::get_function_from).
    ///
    /// # Errors
    /// The error that an implementation raises.
    pub fn function_metadata(&self, name: &str, query_imports: bool) -> Result<Option<String>> {
        self.first_of(query_imports, |module| module.implementation().function_metadata(name))
    }

    /// The doc text of a function, looked for as by [`get_function_from`](Self::get_function_from).
    ///
    /// # Errors
    /// The error that an implementation raises.
    pub fn function_doc(&self, name: &str, query_imports: bool) -> Result<Option<String>> {
        self.first_of(query_imports, |module| module.implementation().function_doc(name))
    }

    /// Imports as a tree says that has no cycle: `children(i)` are the indices of the modules that module `i` imports.
    pub(super) fn import_tree<'a>(modules: &[Module], children: impl Fn(usize) -> &'a [usize]) -> Result<()> {
        // Where each node is a module of its own that imports nothing, the modules have no cycle either, and a long chain needs no walk for
        // each of its links.
        let mut addresses = HashSet::new();
        let fresh = modules.iter().all(|module| addresses.insert(module.address()) && module.imports().is_empty());
        for (node, module) in modules.iter().enumerate() {
            for &child in children(node) {
                match fresh {
                    true => module.push_import(modules[child].clone()),
                    false => module.import_module(&modules[child])?,
                }
            }
        }
        Ok(())
    }

    /// What `look` finds first: here or, if `query_imports`, in the imported modules and theirs, in depth-first order.
    pub(super) fn first_of<T>(
        &self,
        query_imports: bool,
        mut look: impl FnMut(&Module) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let found = look(self)?;
        if found.is_some() || !query_imports {
            return Ok(found);
        }
        // The module that was asked already is not asked again, since no module imports itself, even through others.
        first_of(self.imports(), true, look)
    }

    fn push_import(&self, other: Module) {
        self.body().imports.write().unwrap_or_else(PoisonError::into_inner).push(other);
    }
}

/// As [`Module::first_of`], beginning with `roots`. No module is asked twice.
pub(super) fn first_of<T>(
    mut roots: Vec<Module>,
    query_imports: bool,
    mut look: impl FnMut(&Module) -> Result<Option<T>>,
) -> Result<Option<T>> {
    roots.reverse();
    // Kept, so that addresses stay theirs.
    let mut seen: HashMap<usize, Module> = HashMap::new();
    while let Some(module) = roots.pop() {
        if seen.contains_key(&module.address()) {
            continue;
        }
        if let Some(found) = look(&module)? {
            return Ok(Some(found));
        }
        if query_imports {
            roots.extend(module.imports().into_iter().rev());
        }
        seen.insert(module.address(), module);
    }
    Ok(None)
}
