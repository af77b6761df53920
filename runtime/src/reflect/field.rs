//! Reads and writes fields of objects, using their registered getters and setters.
//! Header sections: `TVMFFIFieldInfo`; upstream's `FieldGetter`, `FieldSetter` and `CallFieldSetter` in accessor.h.

use std::ffi::c_void;
use std::mem::transmute;

use crate::abi::*;
use crate::any::{Any, AnyView};
use crate::error::{Result, raised_error, runtime_error};
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::type_table::fields;

/// The name of a field.
pub(crate) fn name(field: &TVMFFIFieldInfo) -> &'static [u8] {
    // SAFETY: the table's strings are never freed and never change.
    unsafe { field.name.as_slice() }
}

pub(crate) fn has(field: &TVMFFIFieldInfo, flag: i64) -> bool {
    field.flags & flag != 0
}

/// The address of a field. It is valid only if the field is one of the object's type.
fn address(field: &TVMFFIFieldInfo, object: &ObjectRef) -> *mut c_void {
    object.as_ptr().wrapping_byte_offset(field.offset as isize).cast()
}

/// Returns the value of a field.
///
/// # Errors
/// Any error of the getter; `RuntimeError` for a field without one.
///
/// # Safety
/// The field must be registered for the object's type or an ancestor of it.
pub(crate) unsafe fn get(field: &TVMFFIFieldInfo, object: &ObjectRef) -> Result<Any> {
    let getter = field.getter.ok_or_else(|| unreadable(field))?;
    let mut value = TVMFFIAny::none();
    // SAFETY: the field is one of the object's type. The code that registered it promised that its getter reads a field
    // at this address.
    let code = unsafe { getter(address(field, object), &raw mut value) };
    // SAFETY: a getter writes an owned value, or leaves None.
    let value = unsafe { Any::from_raw(value) };
    if code == 0 { Ok(value) } else { Err(raised_error(code)) }
}

/// The value of an object's field of that name; `None` if its type has no such field.
///
/// # Errors
/// Any error of the getter.
pub(crate) fn named(object: &ObjectRef, wanted: &[u8]) -> Result<Option<Any>> {
    let info = fields(object.type_index())?.into_iter().find(|info| name(info) == wanted);
    // SAFETY: the field is one of the object's type.
    info.map(|info| unsafe { get(info, object) }).transpose()
}

#[cold]
fn unreadable(field: &TVMFFIFieldInfo) -> crate::error::Error {
    runtime_error(&format!("the field `{}` has no getter", String::from_utf8_lossy(name(field))))
}

/// Sets a field.
///
/// # Errors
/// Any error of the setter; `RuntimeError` for a field without one.
///
/// # Safety
/// As for [`get`]. Also, no other code may use the field meanwhile; upstream requires the same of its callers.
pub(crate) unsafe fn set(field: &TVMFFIFieldInfo, object: &ObjectRef, value: AnyView<'_>) -> Result<()> {
    let (setter, address) = (field.setter, address(field, object));
    if setter.is_null() {
        return Err(runtime_error(&format!("the field `{}` has no setter", String::from_utf8_lossy(name(field)))));
    }
    if has(field, kTVMFFIFieldFlagBitSetterIsFunctionObj) {
        // SAFETY: the flag says that the setter is a function object, and the table keeps it alive.
        let function = unsafe { ObjectRef::clone_from_raw(setter.cast()) };
        let function = Function::try_from(function.ok_or_else(|| unreadable(field))?)?;
        // SAFETY: a setter takes the address of the field, which is one of the object's type.
        let place = unsafe { AnyView::from_opaque_ptr(address) };
        return function.call_packed(&[place, value]).map(drop);
    }
    // SAFETY: without the flag, the setter is a C function of this type.
    let setter = unsafe { transmute::<*mut c_void, TVMFFIFieldSetter>(setter) };
    let raw = value.as_raw();
    // SAFETY: as for the getter; the value is valid for the call.
    match unsafe { setter(address, &raw const raw) } {
        0 => Ok(()),
        code => Err(raised_error(code)),
    }
}

/// Sets a field to its default. The field must have one.
///
/// # Errors
/// Any error of the factory or the setter.
///
/// # Safety
/// As for [`set`].
pub(crate) unsafe fn set_default(field: &TVMFFIFieldInfo, object: &ObjectRef) -> Result<()> {
    // SAFETY: the table keeps the value.
    let default = unsafe { AnyView::from_raw(field.default_value_or_factory) };
    if !has(field, kTVMFFIFieldFlagBitMaskDefaultFromFactory) {
        // SAFETY: promised by the caller.
        return unsafe { set(field, object, default) };
    }
    let made = default.cast::<Function>()?.call(())?;
    // SAFETY: promised by the caller.
    unsafe { set(field, object, made.as_view()) }
}
