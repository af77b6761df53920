//! What frontends register about types: fields, methods, metadata, attribute columns.
//! Everything registered is copied and kept for the life of the process, as upstream does.
//! Header sections: `TVMFFITypeRegister...`, `TVMFFIGetTypeAttrColumn`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use super::{Table, read, write};
use crate::abi::*;
use crate::any::{Any, AnyView};
use crate::error::{Result, runtime_error};

/// The attribute columns by name. Columns are leaked, so that C may keep their addresses.
#[derive(Default)]
pub(super) struct Attributes {
    columns: HashMap<Vec<u8>, Column>,
}

struct Column {
    header: *mut TVMFFITypeAttrColumn,
    values: Vec<Any>,
}

// SAFETY: the leaked header is only changed under the table's write lock.
unsafe impl Send for Column {}
// SAFETY: as above.
unsafe impl Sync for Column {}

impl Table {
    fn registered_info(&self, index: i32) -> Result<*mut TVMFFITypeInfo> {
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

/// Publishes a longer array: the array first, then its length, so that no reader runs past it.
///
/// # Safety
/// Both places must be fields of an info that is never freed, changed under the write lock only.
unsafe fn publish<T>(array: *mut *const T, len: *mut i32, new_array: *mut T, new_len: i32) {
    // SAFETY: promised by the caller; both are aligned as fields of a repr(C) structure.
    unsafe {
        AtomicPtr::from_ptr(array.cast::<*mut T>()).store(new_array, Ordering::Release);
        AtomicI32::from_ptr(len).store(new_len, Ordering::Release);
    }
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

/// Sets one type's attribute; with type index None only makes sure that the column exists.
///
/// # Errors
/// `RuntimeError` when the type has this attribute already, or the index is negative or unknown.
pub(crate) fn register_attr(index: i32, name: &[u8], value: AnyView<'_>) -> Result<()> {
    let value = value.to_owned()?;
    let mut table = write();
    if index != TypeIndex::NONE.0 {
        table.registered_info(index)?;
    }
    let column = table.attributes.columns.entry(name.to_vec()).or_insert_with(|| Column {
        header: Box::leak(Box::new(TVMFFITypeAttrColumn { data: std::ptr::null(), size: 0, begin_index: 0 })),
        values: Vec::new(),
    });
    if index == TypeIndex::NONE.0 {
        return Ok(());
    }
    let slot = index as usize;
    if slot >= column.values.len() {
        // The old array stays where it is: a reader may be in it. Its values are owned by it and
        // leaked with it; the new array has references of its own.
        let mut values = Vec::with_capacity((slot + 1).next_power_of_two());
        values.extend_from_slice(&column.values);
        values.resize_with(slot + 1, Any::default);
        std::mem::forget(std::mem::replace(&mut column.values, values));
    }
    if let Some(place) = column.values.get_mut(slot) {
        if place.type_index() != TypeIndex::NONE {
            return Err(runtime_error(&format!(
                "TypeAttr `{}` is already registered for type index {index}",
                String::from_utf8_lossy(name)
            )));
        }
        *place = value;
    }
    let len = column.values.len() as i32;
    let array = column.values.as_mut_ptr().cast::<TVMFFIAny>();
    // SAFETY: the header is leaked and changed under the write lock only; `Any` is a transparent
    // `TVMFFIAny`, and the array has `len` of them.
    unsafe {
        publish(&raw mut (*column.header).data, &raw mut (*column.header).size, array, len);
    }
    Ok(())
}

/// The column of an attribute, if any type or frontend has registered it.
pub(crate) fn attr_column(name: &[u8]) -> Option<*const TVMFFITypeAttrColumn> {
    let table = read();
    let column = table.attributes.columns.get(name)?;
    Some(column.header.cast_const())
}

/// One type's attribute.
pub(crate) fn attr_value(index: TypeIndex, name: &[u8]) -> Option<Any> {
    let table = read();
    let value = table.attributes.columns.get(name)?.values.get(usize::try_from(index.0).ok()?)?;
    (!value.is_none()).then(|| value.clone())
}
