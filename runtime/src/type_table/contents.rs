//! Reads the reflection that frontends have registered for types.
//! Header sections: `TVMFFITypeInfo`, `TVMFFIFieldInfo`.

use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use super::reflection::registered_info;
use super::table::type_info;
use crate::abi::*;
use crate::error::Result;

/// The fields of a type: first its ancestors' fields, from the oldest ancestor on but without the root's, then its own.
///
/// # Errors
/// `InternalError` for an unknown type.
pub(crate) fn fields(index: TypeIndex) -> Result<Vec<&'static TVMFFIFieldInfo>> {
    let info = registered_info(index.0)?;
    let mut fields = Vec::new();
    // SAFETY: infos are never freed; depth and ancestors never change.
    for depth in 1..unsafe { (*info).type_depth } as usize {
        // SAFETY: as above: a type of depth n has n ancestors.
        fields.extend(own_fields(unsafe { *(*info).type_ancestors.add(depth) }.cast_mut()));
    }
    fields.extend(own_fields(info));
    Ok(fields)
}

fn own_fields(info: *mut TVMFFITypeInfo) -> &'static [TVMFFIFieldInfo] {
    // SAFETY: neither infos nor arrays are ever freed. The length is loaded before the array, so the array has at least
    // that many fields. These fields don't change any more.
    unsafe {
        let len = AtomicI32::from_ptr(&raw mut (*info).num_fields).load(Ordering::Acquire);
        let fields =
            AtomicPtr::from_ptr((&raw mut (*info).fields).cast::<*mut TVMFFIFieldInfo>()).load(Ordering::Acquire);
        if len == 0 { &[] } else { std::slice::from_raw_parts(fields, len as usize) }
    }
}

/// The metadata of a type, if it is registered.
///
/// # Errors
/// `InternalError` for an unknown type.
pub(crate) fn metadata(index: TypeIndex) -> Result<Option<&'static TVMFFITypeMetadata>> {
    let info = registered_info(index.0)?;
    // SAFETY: infos and their contents are never freed, and metadata doesn't change after it is published.
    unsafe {
        let metadata = AtomicPtr::from_ptr((&raw mut (*info).metadata).cast::<*mut TVMFFITypeMetadata>());
        Ok(metadata.load(Ordering::Acquire).as_ref())
    }
}

/// The hash of a type's key.
///
/// # Errors
/// `InternalError` for an unknown type.
pub(crate) fn key_hash(index: TypeIndex) -> Result<u64> {
    // SAFETY: infos are never freed, and the hash never changes.
    registered_info(index.0).map(|info| unsafe { (*info).type_key_hash })
}

/// True if a type is `ancestor` or derived from it.
pub(crate) fn is_instance(index: TypeIndex, ancestor: TypeIndex) -> bool {
    let (Some(info), Some(of)) = (type_info(index.0), type_info(ancestor.0)) else {
        return false;
    };
    // SAFETY: infos are never freed; depth and ancestors never change, and a type of depth n has n ancestors.
    unsafe {
        let depth = (*of).type_depth as usize;
        index == ancestor
            || (depth < (*info).type_depth as usize && std::ptr::eq(*(*info).type_ancestors.add(depth), of))
    }
}
