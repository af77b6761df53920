//! The infos of an external runtime's types. Upstream aborts the process when asked for a type that isn't registered.

use std::ffi::c_void;

use super::api::Api;
use super::load::api;
use super::order::in_turn;
use crate::abi::*;

/// Stores an info that was found, for later lookups.
type Publish = fn(i32, *mut TVMFFITypeInfo);

/// The info of a type, if it is registered.
pub(crate) fn type_info(index: i32, publish: Publish) -> Option<*mut TVMFFITypeInfo> {
    let api = api().ok()?;
    // SAFETY: the library keeps its infos for the life of the process, and the index was checked.
    in_turn(|| is_registered(api, index).then(|| unsafe { fetch(api, index, publish) })).flatten()
}

/// The info of a type that is known to be registered, such as an object's type.
pub(crate) fn registered_type_info(index: i32, publish: Publish) -> Option<*mut TVMFFITypeInfo> {
    let api = api().ok()?;
    // SAFETY: the index is registered.
    in_turn(|| unsafe { fetch(api, index, publish) })
}

/// # Safety
/// The type must be registered.
unsafe fn fetch(api: &Api, index: i32, publish: Publish) -> Option<*mut TVMFFITypeInfo> {
    // SAFETY: promised by the caller.
    let info = unsafe { (api.TVMFFIGetTypeInfo)(index) }.cast_mut();
    if info.is_null() {
        return None;
    }
    publish(index, info);
    Some(info)
}

/// True if one of the keys that the global function `ffi.GetRegisteredTypeKeys` lists has this type index. A library
/// without that function registers the static types that it needs itself.
fn is_registered(api: &Api, index: i32) -> bool {
    let Some(keys) = Owned::global(api, c"ffi.GetRegisteredTypeKeys".to_bytes()).and_then(|list| list.call()) else {
        return TypeIndex(index).static_type_key().is_some() && (0..TypeIndex::OPAQUE_PY_OBJECT.0).contains(&index);
    };
    if keys.value.type_index != TypeIndex::ARRAY.0 {
        return false;
    }
    // SAFETY: the cell follows the header of an array that is alive, and has `size` values, which are strings.
    unsafe {
        let cell = &*keys.value.ptr().cast::<TVMFFIObject>().add(1).cast::<TVMFFISeqCell>();
        let elements: &[TVMFFIAny] = match usize::try_from(cell.size) {
            Ok(len) if len > 0 => std::slice::from_raw_parts(cell.data.cast(), len),
            _ => &[],
        };
        elements.iter().any(|key| {
            let bytes = match TypeIndex(key.type_index) {
                TypeIndex::SMALL_STR => TVMFFIByteArray {
                    data: (&raw const key.v.v_bytes).cast(),
                    size: (key.zero_padding as usize).min(7),
                },
                TypeIndex::STR => *key.ptr().cast::<TVMFFIObject>().add(1).cast::<TVMFFIByteArray>(),
                _ => return false,
            };
            let mut found = -1;
            (api.TVMFFITypeKeyToIndex)(&raw const bytes, &raw mut found) == 0 && found == index
        })
    }
}

/// A value that owns a reference to its object and uses the library's own functions.
struct Owned<'a> {
    api: &'a Api,
    value: TVMFFIAny,
}

impl<'a> Owned<'a> {
    fn global(api: &'a Api, name: &[u8]) -> Option<Self> {
        let name = TVMFFIByteArray::from_slice(name);
        let mut function: *mut c_void = std::ptr::null_mut();
        // SAFETY: the name is alive, and the variable is writable.
        let code = unsafe { (api.TVMFFIFunctionGetGlobal)(&raw const name, &raw mut function) };
        let value = TVMFFIAny::from_ptr(TypeIndex::FUNCTION, function);
        (code == 0 && !function.is_null()).then_some(Self { api, value })
    }

    /// Calls a function without arguments and returns its result.
    fn call(&self) -> Option<Self> {
        let function = self.value.ptr();
        let mut value = TVMFFIAny::none();
        // SAFETY: the value is a function, and its cell follows its header. The call passes no arguments, and the
        // result starts as None.
        let code = unsafe {
            let cell = &*function.cast::<TVMFFIObject>().add(1).cast::<TVMFFIFunctionCell>();
            cell.safe_call?(function, std::ptr::null(), 0, &raw mut value)
        };
        (code == 0).then_some(Self { api: self.api, value })
    }
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        if TypeIndex(self.value.type_index).is_object() {
            // SAFETY: the value owns a reference, which is released here, once.
            unsafe { (self.api.TVMFFIObjectDecRef)(self.value.ptr()) };
        }
    }
}
