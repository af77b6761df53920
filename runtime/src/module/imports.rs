//! The graph of imports. It has no cycles, and walking it doesn't recurse.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};
use std::sync::{Mutex, PoisonError};

use super::object::Module;
use crate::error::{Result, runtime_error};
use crate::function::Function;
use crate::heap::release;

/// Held while an import is checked and added. Without it, two threads that import each other's module could make a
/// cycle.
static ADDING: Mutex<()> = Mutex::new(());

impl Module {
    /// The imported modules, in the order of their import.
    pub fn imports(&self) -> Vec<Module> {
        self.body().imports.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Appends a module to the imports.
    ///
    /// # Errors
    /// `RuntimeError` if `other` is this module, or imports it directly or through other modules.
    pub fn import_module(&self, other: &Module) -> Result<()> {
        // Declared before the lock guard to drop after it, since a destructor may import modules.
        let mut seen: HashMap<usize, Module> = HashMap::new();
        let adding = ADDING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut waiting = vec![other.clone()];
        while let Some(module) = waiting.pop() {
            // A module that was seen before is dropped here. `seen` has another reference to it.
            if let Entry::Vacant(place) = seen.entry(module.address()) {
                waiting.extend(module.imports());
                place.insert(module);
            }
        }
        let is_cycle = seen.contains_key(&self.address());
        if !is_cycle {
            self.push_import(other.clone());
        }
        // Make the error without the lock, since its allocator may run a user's code.
        drop(adding);
        if is_cycle { Err(runtime_error("Cyclic dependency detected during import")) } else { Ok(()) }
    }

    /// Removes all imports. Functions that were looked up stay.
    pub fn clear_imports(&self) {
        let old = std::mem::take(&mut *self.body().imports.write().unwrap_or_else(PoisonError::into_inner));
        // After the lock, and without recursion, so a long chain of imports doesn't overflow the stack.
        release(old.into_iter().map(Into::into));
    }

    /// The function of that name in this module or, if `query_imports`, in its imports, searched depth-first.
    ///
    /// # Errors
    /// The error that an implementation raises.
    pub fn get_function_from(&self, name: &str, query_imports: bool) -> Result<Option<Function>> {
        self.first_of(query_imports, |module| module.get_function(name))
    }

    /// True if there is a function of that name, even one that can't be called before further compilation. The search
    /// is that of [`get_function_from`](Self::get_function_from).
    ///
    /// # Errors
    /// The error that an implementation raises.
    pub fn implements_function(&self, name: &str, query_imports: bool) -> Result<bool> {
        let found = self
            .first_of(query_imports, |module| Ok(module.implementation().implements_function(name)?.then_some(())))?;
        Ok(found.is_some())
    }

    /// The metadata of a function as a JSON string. The search is that of
    /// [`get_function_from`](Self::get_function_from).
    ///
    /// # Errors
    /// The error that an implementation raises.
    pub fn function_metadata(&self, name: &str, query_imports: bool) -> Result<Option<String>> {
        self.first_of(query_imports, |module| module.implementation().function_metadata(name))
    }

    /// The documentation of a function. The search is that of [`get_function_from`](Self::get_function_from).
    ///
    /// # Errors
    /// The error that an implementation raises.
    pub fn function_doc(&self, name: &str, query_imports: bool) -> Result<Option<String>> {
        self.first_of(query_imports, |module| module.implementation().function_doc(name))
    }

    /// Adds the imports of an acyclic tree: `children(i)` are the indices of the modules that module `i` imports.
    pub(super) fn import_tree<'a>(modules: &[Module], children: impl Fn(usize) -> &'a [usize]) -> Result<()> {
        // If the nodes are distinct modules without imports, their imports can't form a cycle. Then skip the check,
        // which would walk the rest of a long chain for each of its links.
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

    /// The first result of `look`, for this module or, if `query_imports`, for its imports, searched depth-first.
    pub(super) fn first_of<T>(
        &self,
        query_imports: bool,
        mut look: impl FnMut(&Module) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let found = look(self)?;
        if found.is_some() || !query_imports {
            return Ok(found);
        }
        // This module isn't searched twice, since no module imports itself, even through others.
        first_of(self.imports(), true, look)
    }

    fn push_import(&self, other: Module) {
        self.body().imports.write().unwrap_or_else(PoisonError::into_inner).push(other);
    }
}

/// As [`Module::first_of`], beginning with `roots`. Calls `look` once per module.
pub(super) fn first_of<T>(
    mut roots: Vec<Module>,
    query_imports: bool,
    mut look: impl FnMut(&Module) -> Result<Option<T>>,
) -> Result<Option<T>> {
    roots.reverse();
    // Holds the modules, so their addresses can't be reused meanwhile.
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
