//! Visitors: the objects that reach each value of a walk, and their C interface.
//! Header sections: upstream's `StructuralVisitorVTable`, `FStructuralVisitABI`.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::active::{Active, Kind, SIZE};
use super::outcome::{Outcome, outcome_of, value_of};
use super::policy::Policy;
use crate::abi::*;
use crate::any::{Any, AnyView};
use crate::boundary::null_argument;
use crate::error::{Result, from_panic, runtime_error, type_mismatch};
use crate::heap::ObjectRef;
use crate::type_table::{Definition, is_instance, key_to_index};

/// A function that visits a value. It returns None, an interrupt or an error, which the caller owns.
pub(super) type VisitFn = unsafe extern "C" fn(visitor: *mut TVMFFIObject, value: TVMFFIAny) -> TVMFFIAny;

/// The functions of a visitor.
#[repr(C)]
pub(super) struct VTable {
    visit: Option<VisitFn>,
}

/// The kind of active object that visitors are.
pub(super) enum Visiting {}

// SAFETY: only `Active::new` puts the vtable into an object.
unsafe impl Kind for Visiting {
    const KEY: &'static str = "ffi.StructuralVisitor";
    type VTable = VTable;
    type Engine = Policy;
    const VTABLE: &'static VTable = {
        static VTABLE: VTable = VTable { visit: Some(visit) };
        &VTABLE
    };
}

pub(super) type Visitor = Active<Visiting>;

pub(super) fn definition() -> Definition {
    // A shallow copy of a visitor would lack its engine, so the type has no attribute for it.
    Definition::object(Visiting::KEY, "ffi.Object", SIZE, false).keep_layout()
}

/// The active object of a kind in a value.
///
/// # Errors
/// `TypeError` for any other value.
pub(super) fn active<K: Kind>(view: &AnyView<'_>) -> Result<Active<K>> {
    let kind = key_to_index(K::KEY).map(TypeIndex);
    let object = view.object(|object| kind.is_some_and(|kind| is_instance(object.type_index(), kind)));
    let object = object.ok_or_else(|| type_mismatch(K::KEY, view.inner_type_index()))?;
    // SAFETY: the object is one of the type, and all of them have the head: the type keeps its layout.
    Ok(unsafe { Active::from_object(object) })
}

/// Runs the body of a C function on an active object and a value. Returns an error as a value.
///
/// # Safety
/// `object` must be NULL or an active object of the kind, and `value` valid, for this call.
pub(super) unsafe fn entry<K: Kind>(
    object: *mut TVMFFIObject,
    value: TVMFFIAny,
    body: impl FnOnce(&Active<K>, AnyView<'_>) -> Any,
) -> TVMFFIAny {
    // SAFETY: promised by the caller. The caller keeps its reference, as `ManuallyDrop` drops none.
    let object = unsafe { ObjectRef::from_raw(object).map(|object| ManuallyDrop::new(Active::from_object(object))) };
    let Some(object) = object else {
        return Any::from(null_argument("self")).into_raw();
    };
    // SAFETY: promised by the caller.
    let value = unsafe { AnyView::from_raw(value) };
    let outcome = catch_unwind(AssertUnwindSafe(|| body(&object, value)));
    outcome.unwrap_or_else(|payload| from_panic(payload).into()).into_raw()
}

/// The function `visit` of this crate's visitors.
unsafe extern "C" fn visit(visitor: *mut TVMFFIObject, value: TVMFFIAny) -> TVMFFIAny {
    // SAFETY: by the contract of the vtable's functions.
    unsafe { entry(visitor, value, |visitor: &Visitor, value| value_of(visitor.visit_view(&value))) }
}

/// The hook of containers: visits the values inside.
pub(super) unsafe extern "C" fn visit_container(visitor: *mut TVMFFIObject, value: TVMFFIAny) -> TVMFFIAny {
    // SAFETY: by the contract of hooks.
    unsafe { entry(visitor, value, |visitor: &Visitor, value| value_of(visitor.default_visit_view(&value))) }
}

impl Visitor {
    /// As [`Visitor::visit`], for a value that is borrowed for the call.
    pub(super) fn visit_view(&self, value: &AnyView<'_>) -> Outcome {
        self.visit(value.to_owned()?)
    }

    /// As [`Visitor::default_visit`], for a value that is borrowed for the call.
    pub(super) fn default_visit_view(&self, value: &AnyView<'_>) -> Outcome {
        self.default_visit(value.to_owned()?)
    }

    /// Calls the vtable's `visit`.
    pub(super) fn call_vtable(&self, value: &Any) -> Outcome {
        let visit = self.vtable()?.visit.ok_or_else(|| runtime_error("a visitor without a function to visit"))?;
        // SAFETY: the function belongs to this visitor, and the value is alive for the call.
        let result = unsafe { visit(self.object().as_ptr(), *value.as_raw()) };
        // SAFETY: a visit returns an owned value.
        outcome_of(unsafe { Any::from_raw(result) })
    }

    /// Calls a hook of a type.
    ///
    /// # Safety
    /// The address must be that of a hook.
    pub(super) unsafe fn call_hook(&self, hook: *mut std::ffi::c_void, value: &Any) -> Outcome {
        // SAFETY: promised by the caller; NULL is `None`.
        let hook = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Option<VisitFn>>(hook) };
        let hook = hook.ok_or_else(|| runtime_error("the hook `__s_visit__` is NULL"))?;
        // SAFETY: the code that registered the hook promised that it takes any visitor and a value of the type.
        let result = unsafe { hook(self.object().as_ptr(), *value.as_raw()) };
        // SAFETY: a hook returns an owned value.
        outcome_of(unsafe { Any::from_raw(result) })
    }
}
