//! The C symbol that the C++ part (`../cxx`) calls when the library is loaded.

use std::ffi::{c_int, c_void};

use runtime::abi::TVMFFIObjectHandle;
use runtime::{AsObject, Error, Map, ObjectRef};

/// Attaches the C++ part; `cxx/attach.h` declares this function. Returns 0, or -1 with a raised error.
///
/// # Safety
/// `vtable` and `methods` must be what [`attach`](runtime::unstable::cxx::attach) takes, and `services` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tfr_attach_cxx(
    vtable: *const c_void,
    methods: TVMFFIObjectHandle,
    services: *mut TVMFFIObjectHandle,
) -> c_int {
    // SAFETY: promised by the caller.
    let methods = unsafe { ObjectRef::clone_from_raw(methods.cast()) };
    let methods = methods.ok_or_else(|| Error::new("ValueError", "no methods")).and_then(Map::try_from);
    // SAFETY: promised by the caller.
    let attached = methods.and_then(|methods| unsafe { runtime::unstable::cxx::attach(vtable, &methods) });
    match attached {
        Ok(map) => {
            // SAFETY: promised by the caller.
            unsafe { services.write(map.into_object().into_raw().cast()) };
            0
        }
        Err(error) => {
            // SAFETY: the error is alive during the call.
            unsafe { runtime::capi::TVMFFIErrorSetRaised(error.as_object().as_ptr().cast()) };
            -1
        }
    }
}
