//! Mutators: the objects that replace each value of a map, and their C interface.
//! Header sections: upstream's `StructuralMutatorVTable`, `FStructuralMutateABI`, `StructuralMapEngineBase`.

use std::collections::HashMap;
use std::ffi::c_void;
use std::mem::transmute;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::active::{Active, Kind, SIZE};
use super::outcome::{checked, unchanged};
use super::rewrite::Policy;
use super::visitor::entry;
use crate::abi::*;
use crate::any::{Any, AnyView};
use crate::error::{Error, Result, runtime_error, type_error};
use crate::heap::ObjectRef;
use crate::reflect::children::object_of;
use crate::type_table::Definition;

/// A function that takes a value. It returns a value, which the caller owns: an error in place of a result.
pub(super) type MutateFn = unsafe extern "C" fn(mutator: *mut TVMFFIObject, value: TVMFFIAny) -> TVMFFIAny;
/// A function that stores the replacement of a variable.
type StoreFn = unsafe extern "C" fn(mutator: *mut TVMFFIObject, var: TVMFFIAny, value: TVMFFIAny) -> TVMFFIAny;

/// The functions of a mutator.
#[repr(C)]
pub(super) struct VTable {
    mutate: Option<MutateFn>,
    mutate_in_place: Option<MutateFn>,
    replacement: Option<MutateFn>,
    store: Option<StoreFn>,
}

/// The kind of active object that mutators are.
pub(super) enum Mutating {}

// SAFETY: only `Active::new` puts the vtable into an object.
unsafe impl Kind for Mutating {
    const KEY: &'static str = "ffi.StructuralMutator";
    type VTable = VTable;
    type Engine = Engine;
    const VTABLE: &'static VTable = {
        static VTABLE: VTable = VTable {
            mutate: Some(mutate),
            mutate_in_place: Some(mutate_in_place),
            replacement: Some(replacement),
            store: Some(store),
        };
        &VTABLE
    };
}

pub(super) type Mutator = Active<Mutating>;

pub(super) fn definition() -> Definition {
    // As for visitors.
    Definition::object(Mutating::KEY, "ffi.Object", SIZE, false).keep_layout()
}

/// This crate's mutators: their work at each value, and the replacements of variables.
pub(super) struct Engine {
    pub(super) policy: Policy,
    /// Variables with their replacements, by the variables' addresses.
    replacements: Mutex<HashMap<usize, (ObjectRef, Any)>>,
}

impl Engine {
    pub(super) fn new(policy: Policy) -> Self {
        Self { policy, replacements: Mutex::default() }
    }

    fn replacements(&self) -> MutexGuard<'_, HashMap<usize, (ObjectRef, Any)>> {
        self.replacements.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn value_of(result: Result<Any>) -> Any {
    result.unwrap_or_else(Any::from)
}

unsafe extern "C" fn mutate(mutator: *mut TVMFFIObject, value: TVMFFIAny) -> TVMFFIAny {
    // SAFETY: by the contract of the vtable's functions.
    unsafe { entry(mutator, value, |mutator: &Mutator, value| value_of(mutator.mutate(&value))) }
}

unsafe extern "C" fn mutate_in_place(mutator: *mut TVMFFIObject, value: TVMFFIAny) -> TVMFFIAny {
    // SAFETY: as above. By contract the value may be changed in place.
    unsafe { entry(mutator, value, |mutator: &Mutator, value| value_of(mutator.mutate_in_place(&value))) }
}

unsafe extern "C" fn replacement(mutator: *mut TVMFFIObject, var: TVMFFIAny) -> TVMFFIAny {
    // SAFETY: as above.
    unsafe { entry(mutator, var, |mutator: &Mutator, var| value_of(mutator.replacement(&var))) }
}

unsafe extern "C" fn store(mutator: *mut TVMFFIObject, var: TVMFFIAny, value: TVMFFIAny) -> TVMFFIAny {
    // SAFETY: as above, for both values.
    unsafe {
        let value = AnyView::from_raw(value);
        entry(mutator, var, |mutator: &Mutator, var| value_of(mutator.store(&var, &value).map(Any::from)))
    }
}

/// The hook of containers: maps the values inside, in a copy.
pub(super) unsafe extern "C" fn mutate_container(mutator: *mut TVMFFIObject, value: TVMFFIAny) -> TVMFFIAny {
    // SAFETY: by the contract of hooks.
    unsafe { entry(mutator, value, |mutator: &Mutator, value| value_of(mutator.mutate_inside(&value))) }
}

/// The hook of containers that no other code uses: maps the values inside in place.
pub(super) unsafe extern "C" fn mutate_container_in_place(mutator: *mut TVMFFIObject, value: TVMFFIAny) -> TVMFFIAny {
    // SAFETY: by the contract of hooks, which also lets the value change in place.
    unsafe { entry(mutator, value, |mutator: &Mutator, value| value_of(mutator.mutate_inside_in_place(&value))) }
}

/// The hook of types without values inside.
pub(super) unsafe extern "C" fn mutate_leaf(_mutator: *mut TVMFFIObject, _value: TVMFFIAny) -> TVMFFIAny {
    unchanged().into_raw()
}

#[cold]
fn incomplete(what: &str) -> Error {
    runtime_error(&format!("a mutator without a function to {what}"))
}

#[cold]
fn no_key() -> Error {
    type_error("Variable-remap key must be an object-backed value")
}

impl Mutator {
    /// The replacement of a variable; None without one.
    ///
    /// # Errors
    /// `TypeError` for a key without an object; any error of another implementation.
    pub(super) fn replacement(&self, var: &AnyView<'_>) -> Result<Any> {
        if let Some(engine) = self.engine() {
            let var = var.shared_object().ok_or_else(no_key)?;
            let known = engine.replacements();
            return checked(known.get(&var.as_ptr().addr()).map_or_else(Any::none, |(_, value)| value.clone()));
        }
        let find = self.vtable()?.replacement.ok_or_else(|| incomplete("find a replacement"))?;
        // SAFETY: the function belongs to this mutator, and the value is alive for the call.
        let result = unsafe { find(self.object().as_ptr(), var.as_raw()) };
        // SAFETY: the function returns an owned value.
        checked(unsafe { Any::from_raw(result) })
    }

    /// Stores the replacement of a variable.
    ///
    /// # Errors
    /// As [`Mutator::replacement`].
    pub(super) fn store(&self, var: &AnyView<'_>, value: &AnyView<'_>) -> Result<()> {
        if let Some(engine) = self.engine() {
            let (var, value) = (var.shared_object().ok_or_else(no_key)?, value.to_owned()?);
            let old = engine.replacements().insert(var.as_ptr().addr(), (var, value));
            // Its destructor runs after the lock is released.
            drop(old);
            return Ok(());
        }
        let store = self.vtable()?.store.ok_or_else(|| incomplete("store a replacement"))?;
        // SAFETY: as above.
        let result = unsafe { store(self.object().as_ptr(), var.as_raw(), value.as_raw()) };
        // SAFETY: as above.
        checked(unsafe { Any::from_raw(result) }).map(drop)
    }

    /// Calls the vtable's function that maps a value.
    ///
    /// # Errors
    /// The error of the function.
    pub(super) fn call_vtable(&self, value: &Any, in_place: bool) -> Result<Any> {
        let vtable = self.vtable()?;
        let function = if in_place { vtable.mutate_in_place } else { vtable.mutate };
        let function = function.ok_or_else(|| incomplete("map a value"))?;
        // SAFETY: as above. A value that may not change in place goes to the other function.
        let result = unsafe { function(self.object().as_ptr(), *value.as_raw()) };
        // SAFETY: as above.
        checked(unsafe { Any::from_raw(result) })
    }

    /// Calls a hook of a type.
    ///
    /// # Errors
    /// The error of the hook.
    ///
    /// # Safety
    /// The address must be that of a hook.
    pub(super) unsafe fn call_hook(&self, hook: *mut c_void, value: &Any) -> Result<Any> {
        // SAFETY: promised by the caller; NULL is `None`.
        let hook = unsafe { transmute::<*mut c_void, Option<MutateFn>>(hook) };
        let hook = hook.ok_or_else(|| runtime_error("the hook of a type is NULL"))?;
        // SAFETY: the code that registered the hook promised that it takes any mutator and a value of the type.
        let result = unsafe { hook(self.object().as_ptr(), *value.as_raw()) };
        // SAFETY: as above.
        checked(unsafe { Any::from_raw(result) })
    }
}

/// The number of strong references to the object in a value, if it has no weak ones.
pub(super) fn references(value: &Any) -> Option<u32> {
    let object = object_of(value)?;
    // Not counting the reference of this function.
    (object.weak_count() == 0).then(|| object.strong_count() - 1)
}
