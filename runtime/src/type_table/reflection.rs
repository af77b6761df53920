//! What frontends register about types: fields, methods, metadata.
//! Everything registered is copied and kept for the life of the process, as upstream does.
//! Header sections: `TVMFFITypeRegister...`.

use std::sync::atomic::{AtomicPtr, Ordering};

use super::publish::publish;
use super::table::{Table, write};
use crate::abi::*;
use crate::any::AnyView;
use crate::error::{Result, runtime_error};

impl Table {
    pub(super) fn registered_info(&self, index: i32) -> Result<*mut TVMFFITypeInfo> {
        self.info(index).ok_or_else(|| runtime_error(&format!("Cannot find type info for type_index={index}")))
    }
}

/// A copy of `text` that is never freed.
///
/// # Safety
/// `text` must describe readable bytes.
unsafe fn leak_text(text: TVMFFIByteArray) -> TVMFFIByteArray {
    // SAFETY: promised by the caller.
    let bytes = unsafe { text.as_slice() };
    if bytes.is_empty() {
        return TVMFFIByteArray::EMPTY;
    }
    TVMFFIByteArray::from_slice(Vec::leak(bytes.to_vec()))
}

/// An owned copy of `value` that is never dropped.
///
/// # Safety
/// `value` must be a valid view.
unsafe fn leak_value(value: TVMFFIAny) -> Result<TVMFFIAny> {
    // SAFETY: promised by the caller.
    let view = unsafe { AnyView::from_raw(value) };
    Ok(view.to_owned()?.into_raw())
}

/// Appends `item` to a leaked array; the old array stays where it is for whoever reads it.
///
/// # Safety
/// `array` must hold `len` items.
unsafe fn appended<T: Copy>(array: *const T, len: i32, item: T) -> *mut T {
    let mut items = Vec::with_capacity(len as usize + 1);
    if !array.is_null() {
        // SAFETY: promised by the caller.
        items.extend_from_slice(unsafe { std::slice::from_raw_parts(array, len as usize) });
    }
    items.push(item);
    Vec::leak(items).as_mut_ptr()
}

/// Adds a field to a type.
///
/// # Errors
/// `RuntimeError` for an unknown type or a field name that the type has already.
///
/// # Safety
/// `field` must be filled as the header says.
pub(crate) unsafe fn register_field(index: i32, field: &TVMFFIFieldInfo) -> Result<()> {
    let table = write();
    let info = table.registered_info(index)?;
    // SAFETY: the info is never freed, only changed under the write lock held here, and its
    // arrays are as long as it says; `field` is valid by contract.
    unsafe {
        let (fields, len) = ((*info).fields, (*info).num_fields);
        let name = field.name.as_slice();
        for i in 0..len as usize {
            if (*fields.add(i)).name.as_slice() == name {
                return Err(runtime_error(&format!(
                    "Duplicate field name \"{}\" in type index {index}",
                    String::from_utf8_lossy(name)
                )));
            }
        }
        let mut copy = *field;
        copy.name = leak_text(field.name);
        copy.doc = leak_text(field.doc);
        copy.metadata = leak_text(field.metadata);
        if field.flags & kTVMFFIFieldFlagBitSetterIsFunctionObj != 0 && !field.setter.is_null() {
            leak_value(TVMFFIAny::from_ptr(TypeIndex::FUNCTION, field.setter))?;
        }
        copy.default_value_or_factory = if field.flags & kTVMFFIFieldFlagBitMaskHasDefault != 0 {
            leak_value(field.default_value_or_factory)?
        } else {
            TVMFFIAny::none()
        };
        let array = appended(fields, len, copy);
        publish(&raw mut (*info).fields, &raw mut (*info).num_fields, array, len + 1);
    }
    Ok(())
}

/// Adds a method to a type.
///
/// # Errors
/// `RuntimeError` for an unknown type.
///
/// # Safety
/// `method` must be filled as the header says.
pub(crate) unsafe fn register_method(index: i32, method: &TVMFFIMethodInfo) -> Result<()> {
    let table = write();
    let info = table.registered_info(index)?;
    // SAFETY: as in `register_field`.
    unsafe {
        let mut copy = *method;
        copy.name = leak_text(method.name);
        copy.doc = leak_text(method.doc);
        copy.metadata = leak_text(method.metadata);
        copy.method = leak_value(method.method)?;
        let len = (*info).num_methods;
        let array = appended((*info).methods, len, copy);
        publish(&raw mut (*info).methods, &raw mut (*info).num_methods, array, len + 1);
    }
    Ok(())
}

/// Sets a type's extra information, once.
///
/// # Errors
/// `RuntimeError` for an unknown type, or one that has such information already.
///
/// # Safety
/// `metadata` must be filled as the header says.
pub(crate) unsafe fn register_metadata(index: i32, metadata: &TVMFFITypeMetadata) -> Result<()> {
    let table = write();
    let info = table.registered_info(index)?;
    // SAFETY: as in `register_field`.
    unsafe {
        if !(*info).metadata.is_null() {
            return Err(runtime_error(&format!("type index {index} has metadata already")));
        }
        let mut copy = *metadata;
        copy.doc = leak_text(metadata.doc);
        let copy: *mut TVMFFITypeMetadata = Box::leak(Box::new(copy));
        let place = (&raw mut (*info).metadata).cast::<*mut TVMFFITypeMetadata>();
        AtomicPtr::from_ptr(place).store(copy, Ordering::Release);
    }
    Ok(())
}
