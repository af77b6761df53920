//! C symbols of the type table and of reflection. Where upstream ends the process (an unknown index), these functions
//! return an empty type info, or -1. Header sections: "Type reflection support APIs", `TVMFFITypeGetOrAllocIndex`.

use std::ffi::c_int;

use crate::abi::*;
use crate::any::AnyView;
use crate::boundary::{guard, guard_value, required, required_bytes, required_out};
use crate::type_table::{self, TypeRequest};

/// The index of a type by its key.
///
/// # Safety
/// `type_key` must be NULL or a valid byte array; `out_tindex` NULL or writable.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFITypeKeyToIndex(type_key: *const TVMFFIByteArray, out_tindex: *mut i32) -> c_int {
    guard(|| {
        let out = required_out(out_tindex, "out_tindex")?;
        // SAFETY: promised by the caller.
        let key = unsafe { required_bytes(type_key, "type_key")? };
        let index = type_table::required_index(key)?;
        // SAFETY: `out` is not NULL, and writable by contract.
        unsafe { out.write(index) };
        Ok(())
    })
}

/// The index of a type. Registers the type if it is new. Returns -2 if a query finds nothing, and -1 with the error
/// raised (upstream ends the process).
///
/// # Safety
/// `type_key` must be NULL or a valid byte array.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFITypeGetOrAllocIndex(
    type_key: *const TVMFFIByteArray,
    static_type_index: i32,
    type_depth: i32,
    num_child_slots: i32,
    child_slots_can_overflow: i32,
    parent_type_index: i32,
) -> i32 {
    guard_value(-1, || {
        // SAFETY: promised by the caller.
        let key = unsafe { required_bytes(type_key, "type_key")? };
        type_table::get_or_alloc_index(TypeRequest {
            key,
            static_index: static_type_index,
            depth: type_depth,
            num_child_slots,
            child_slots_can_overflow: child_slots_can_overflow != 0,
            parent: parent_type_index,
        })
    })
}

/// The info of a type, at an address that stays valid. Upstream ends the process for an unknown index. Here the result
/// is an empty info with index -1, since C++ code dereferences it without a check for NULL.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub extern "C" fn TVMFFIGetTypeInfo(type_index: i32) -> *const TVMFFITypeInfo {
    match type_table::ready_type_info(type_index) {
        Some(info) => info,
        None => first_type_info(type_index),
    }
}

/// Like [`TVMFFIGetTypeInfo`], for when the table of types may still have to be filled.
#[cold]
#[inline(never)]
fn first_type_info(type_index: i32) -> *const TVMFFITypeInfo {
    let unknown = &raw const UNKNOWN.0;
    guard_value(unknown, || Ok(type_table::type_info(type_index).unwrap_or(unknown)))
}

struct SyncInfo(TVMFFITypeInfo);
// SAFETY: neither the info nor the data that it points at ever changes.
unsafe impl Sync for SyncInfo {}

/// The info returned for unknown types.
static UNKNOWN: SyncInfo = SyncInfo(TVMFFITypeInfo {
    type_index: TypeIndex::ANY.0,
    type_depth: 0,
    type_key: TVMFFIByteArray::from_slice(b"unknown type"),
    type_ancestors: std::ptr::null_mut(),
    type_key_hash: 0,
    num_fields: 0,
    num_methods: 0,
    fields: std::ptr::null(),
    methods: std::ptr::null(),
    metadata: std::ptr::null(),
});

/// Registers a field of a type.
///
/// # Safety
/// `info` must be NULL or filled as the header says.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFITypeRegisterField(type_index: i32, info: *const TVMFFIFieldInfo) -> c_int {
    // SAFETY: promised by the caller.
    guard(|| unsafe { type_table::register_field(type_index, required(info, "info")?) })
}

/// Registers a method of a type.
///
/// # Safety
/// `info` must be NULL or filled as the header says.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFITypeRegisterMethod(type_index: i32, info: *const TVMFFIMethodInfo) -> c_int {
    // SAFETY: promised by the caller.
    guard(|| unsafe { type_table::register_method(type_index, required(info, "info")?) })
}

/// Registers extra information of a type.
///
/// # Safety
/// `metadata` must be NULL or filled as the header says.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFITypeRegisterMetadata(type_index: i32, metadata: *const TVMFFITypeMetadata) -> c_int {
    // SAFETY: promised by the caller.
    guard(|| unsafe { type_table::register_metadata(type_index, required(metadata, "metadata")?) })
}

/// Registers an attribute of a type.
///
/// # Safety
/// Pointers must be NULL or valid as the header says.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFITypeRegisterAttr(
    type_index: i32,
    attr_name: *const TVMFFIByteArray,
    attr_value: *const TVMFFIAny,
) -> c_int {
    guard(|| {
        // SAFETY: promised by the caller.
        unsafe {
            let name = required_bytes(attr_name, "attr_name")?;
            let value = AnyView::from_raw(*required(attr_value, "attr_value")?);
            type_table::register_attr(type_index, name, value)
        }
    })
}

/// The column of an attribute, at an address that stays valid; NULL if no type has registered the attribute.
///
/// # Safety
/// `attr_name` must be NULL or a valid byte array.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIGetTypeAttrColumn(attr_name: *const TVMFFIByteArray) -> *const TVMFFITypeAttrColumn {
    guard_value(std::ptr::null(), || {
        // SAFETY: promised by the caller.
        let name = unsafe { required_bytes(attr_name, "attr_name")? };
        Ok(type_table::attr_column(name).unwrap_or(std::ptr::null()))
    })
}
