//! Registers the reflection of types for frontends: fields, methods, metadata.
//! The table copies everything and keeps it until the process ends, as upstream does.
//! Header sections: `TVMFFITypeRegister...`.

use std::sync::atomic::{AtomicPtr, Ordering};

use super::publish::append;
use super::table::{type_info, write};
use crate::abi::*;
use crate::any::{Any, AnyView};
use crate::error::{Result, check_failed, runtime_error};
use crate::heap::{ObjectRef, live};
use crate::process;
use crate::type_info::key_of;

/// The info of a registered type.
///
/// # Errors
/// `InternalError` for an unknown type.
pub(super) fn registered_info(index: i32) -> Result<*mut TVMFFITypeInfo> {
    let unknown = || check_failed("entry != nullptr", &format!("Cannot find type info for type_index={index}"));
    let info = type_info(index).ok_or_else(unknown)?;
    Ok(info.cast_mut())
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

/// Adds a field to a type.
///
/// # Errors
/// `InternalError` for an unknown type, or a field name that the type already has.
///
/// # Safety
/// `field` must be filled as the header says.
pub(crate) unsafe fn register_field(index: i32, field: &TVMFFIFieldInfo) -> Result<()> {
    let info = registered_info(index)?;
    // Own values and make errors without the lock, since the allocator of objects may run a user's code.
    // SAFETY: `field` is valid by contract. The info is never freed, and changed only under the write lock. Its arrays
    // have the length that it states.
    unsafe {
        let name = field.name.as_slice();
        let default = match field.flags & kTVMFFIFieldFlagBitMaskHasDefault {
            0 => Any::none(),
            _ => AnyView::from_raw(field.default_value_or_factory).to_owned()?,
        };
        let setter = match field.flags & kTVMFFIFieldFlagBitSetterIsFunctionObj {
            0 => None,
            _ => ObjectRef::clone_from_raw(field.setter.cast()),
        };
        let table = write();
        let (fields, len) = ((*info).fields, (*info).num_fields);
        if (0..len as usize).any(|i| (*fields.add(i)).name.as_slice() == name) {
            drop(table);
            let name = String::from_utf8_lossy(name);
            let message = format!("Duplicate field name \"{name}\" in type \"{}\"", key_of(TypeIndex(index)));
            return Err(check_failed("std::string_view(existing.name.data, existing.name.size) != new_name", &message));
        }
        let mut copy = *field;
        copy.name = leak_text(field.name);
        copy.doc = leak_text(field.doc);
        copy.metadata = leak_text(field.metadata);
        copy.default_value_or_factory = default.into_kept_raw();
        if let Some(setter) = setter {
            live::gone(setter.into_raw());
        }
        append(&raw mut (*info).fields, &raw mut (*info).num_fields, copy);
    }
    Ok(())
}

/// Adds a method to a type.
///
/// # Errors
/// `InternalError` for an unknown type.
///
/// # Safety
/// `method` must be filled as the header says.
pub(crate) unsafe fn register_method(index: i32, method: &TVMFFIMethodInfo) -> Result<()> {
    let info = registered_info(index)?;
    // SAFETY: as in `register_field`.
    unsafe {
        let value = AnyView::from_raw(method.method).to_owned()?;
        let mut copy = *method;
        copy.name = leak_text(method.name);
        copy.doc = leak_text(method.doc);
        copy.metadata = leak_text(method.metadata);
        copy.method = value.into_kept_raw();
        let _table = write();
        append(&raw mut (*info).methods, &raw mut (*info).num_methods, copy);
    }
    Ok(())
}

/// Sets a type's metadata. This works once per type.
///
/// # Errors
/// `InternalError` for an unknown type, `RuntimeError` for one that already has metadata.
///
/// # Safety
/// `metadata` must be filled as the header says.
pub(crate) unsafe fn register_metadata(index: i32, metadata: &TVMFFITypeMetadata) -> Result<()> {
    let info = registered_info(index)?;
    // SAFETY: as in `register_field`.
    unsafe {
        let table = write();
        if !(*info).metadata.is_null() {
            drop(table);
            return Err(runtime_error(&process::beside::registered_twice(format!(
                "Overriding {}, possible causes:\n\
                 - two ObjectDef<T>() calls for the same T \n\
                 - when we forget to assign _type_key to ObjectRef<Y> that inherits from T\n\
                 - another type with the same key is already registered\n\
                 Cross check the reflection registration.",
                key_of(TypeIndex(index))
            ))));
        }
        let mut copy = *metadata;
        copy.doc = leak_text(metadata.doc);
        let copy: *mut TVMFFITypeMetadata = Box::leak(Box::new(copy));
        let place = (&raw mut (*info).metadata).cast::<*mut TVMFFITypeMetadata>();
        AtomicPtr::from_ptr(place).store(copy, Ordering::Release);
    }
    Ok(())
}
