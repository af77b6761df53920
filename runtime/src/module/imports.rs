//! The graph of imports. It has no cycles, and walking it doesn't recurse.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};
use std::ptr::null_mut;
use std::sync::atomic::Ordering;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use super::layout::no_imports;
use super::object::Module;
use crate::any::Any;
use crate::container::Array;
use crate::error::{Result, runtime_error};
use crate::function::Function;
use crate::heap::{AsObject, ObjectRef, release};

/// Held while the imports of any module are read or replaced, and while an import is checked: otherwise two threads
/// that import each other's module could make a cycle.
static IMPORTS: RwLock<()> = RwLock::new(());

fn reading() -> RwLockReadGuard<'static, ()> {
    IMPORTS.read().unwrap_or_else(PoisonError::into_inner)
}

fn modules(imports: &Array) -> impl DoubleEndedIterator<Item = Module> {
    imports.iter().filter_map(|import| import.cast().ok())
}

impl Module {
    /// The imported modules, in the order of their import.
    pub fn imports(&self) -> Vec<Module> {
        self.imports_array().map_or_else(Vec::new, |imports| modules(&imports).collect())
    }

    fn imports_array(&self) -> Option<Array> {
        if self.imports_field().load(Ordering::Relaxed).is_null() {
            return None;
        }
        let _reading = reading();
        // SAFETY: the lock is held.
        unsafe { self.imports_while_locked() }
    }

    /// # Safety
    /// [`IMPORTS`] must be locked.
    unsafe fn imports_while_locked(&self) -> Option<Array> {
        let imports = self.imports_field().load(Ordering::Relaxed);
        // SAFETY: NULL, or the field's reference keeps the object alive, since only a lock's holder replaces it.
        unsafe { ObjectRef::clone_from_raw(imports) }?.downcast().ok()
    }

    /// Appends a module to the imports.
    ///
    /// # Errors
    /// `RuntimeError` if `other` is this module, or imports it directly or through other modules; the error that a C++
    /// module raises.
    pub fn import_module(&self, other: &Module) -> Result<()> {
        match self.as_cxx() {
            Some(module) => module.import_module(other.as_object()),
            None => self.add_import(other),
        }
    }

    /// As [`import_module`](Self::import_module), without the method of a C++ module.
    pub(super) fn add_import(&self, other: &Module) -> Result<()> {
        loop {
            let old = self.imports_array();
            // Allocate without the lock, since a custom allocator may run a user's code.
            let mut new = array(old.as_ref(), std::slice::from_ref(other));
            // Declared before the lock guard to drop after it, since a destructor may import modules.
            let (mut seen, mut arrays) = (HashMap::new(), Vec::new());
            let adding = IMPORTS.write().unwrap_or_else(PoisonError::into_inner);
            let mut waiting = vec![other.clone()];
            while let Some(module) = waiting.pop() {
                // A module that was seen before is dropped here. `seen` has another reference to it.
                if let Entry::Vacant(place) = seen.entry(module.address()) {
                    // SAFETY: the lock is held.
                    let imports = unsafe { module.imports_while_locked() };
                    waiting.extend(imports.iter().flat_map(modules));
                    arrays.extend(imports);
                    place.insert(module);
                }
            }
            let is_cycle = seen.contains_key(&self.address());
            // SAFETY: the lock is held for writing.
            let replaced = is_cycle || unsafe { self.replace(old.as_ref(), &mut new) };
            drop(adding);
            // Make the error without the lock, for the same reason.
            match (is_cycle, replaced) {
                (true, _) => return Err(runtime_error("Cyclic dependency detected during import")),
                (false, true) => return Ok(()),
                // Another thread was faster.
                (false, false) => {}
            }
        }
    }

    /// Swaps the array of imports with `new` if it is still `old`, and returns whether it was.
    ///
    /// # Safety
    /// [`IMPORTS`] must be locked for writing.
    unsafe fn replace(&self, old: Option<&Array>, new: &mut Option<ObjectRef>) -> bool {
        let field = self.imports_field();
        let is_old = field.load(Ordering::Relaxed) == old.map_or(null_mut(), |old| old.as_object().as_ptr());
        if is_old {
            let array = field.swap(new.take().map_or(null_mut(), ObjectRef::into_raw), Ordering::AcqRel);
            // SAFETY: the field owned the reference that is moved out of it.
            *new = unsafe { ObjectRef::from_raw(array) };
        }
        is_old
    }

    /// Removes all imports. Functions that were looked up stay.
    pub fn clear_imports(&self) {
        match self.as_cxx() {
            // Upstream's method doesn't fail.
            Some(module) => drop(module.clear_imports()),
            None => self.remove_imports(),
        }
    }

    /// As [`clear_imports`](Self::clear_imports), without the method of a C++ module.
    pub(super) fn remove_imports(&self) {
        let none = no_imports();
        let clearing = IMPORTS.write().unwrap_or_else(PoisonError::into_inner);
        let old = self.imports_field().swap(none, Ordering::AcqRel);
        drop(clearing);
        // After the lock, and without recursion, so a long chain of imports doesn't overflow the stack.
        // SAFETY: the field owned the reference that was moved out of it.
        release(unsafe { ObjectRef::from_raw(old) }.into_iter());
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
            let imports: Vec<Module> = children(node).iter().map(|&child| modules[child].clone()).collect();
            match fresh {
                true => module.append_imports(&imports),
                false => imports.iter().try_for_each(|import| module.add_import(import))?,
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

    /// Appends modules that don't import this one.
    fn append_imports(&self, others: &[Module]) {
        if others.is_empty() {
            return;
        }
        loop {
            let old = self.imports_array();
            let mut new = array(old.as_ref(), others);
            let adding = IMPORTS.write().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: the lock is held for writing.
            let replaced = unsafe { self.replace(old.as_ref(), &mut new) };
            drop(adding);
            if replaced {
                return;
            }
        }
    }
}

/// An array of imports and further ones.
fn array(imports: Option<&Array>, more: &[Module]) -> Option<ObjectRef> {
    let imports = imports.into_iter().flat_map(|imports| imports.iter().cloned());
    Some(imports.chain(more.iter().cloned().map(Any::from)).collect::<Array>().into())
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
