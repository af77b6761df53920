//! C symbols of objects: version, counts, opaque objects, allocator, one-time handles. Releasing a NULL handle does
//! nothing, as in upstream; adding a reference to one is an error. Header sections: "Basic object API",
//! "ObjectAllocHeader and CustomAllocator".

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::abi::*;
use crate::boundary::{guard, guard_value, null_argument, required_out};
use crate::heap::{alloc, count};
use crate::object::create_opaque;
use crate::once::init_once;

/// The version of the TVM FFI that this crate implements: `TVM_FFI_VERSION_*` of `tvm/ffi/c_api.h`.
pub const VERSION: TVMFFIVersion = TVMFFIVersion { major: 0, minor: 1, patch: 16 };

/// Writes the version.
///
/// # Safety
/// `out_version` must be NULL or writable.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIGetVersion(out_version: *mut TVMFFIVersion) {
    if !out_version.is_null() {
        // SAFETY: not NULL, and writable by contract.
        unsafe { out_version.write(VERSION) };
    }
}

/// Adds a strong reference.
///
/// # Safety
/// `obj` must be NULL or an object that is alive.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIObjectIncRef(obj: TVMFFIObjectHandle) -> c_int {
    if obj.is_null() {
        return raise_null_object();
    }
    // SAFETY: promised by the caller.
    unsafe { count::inc_ref(obj.cast()) };
    0
}

/// Declared as a C function, like its caller: neither unwinds, so the caller jumps here and needs no frame.
#[cold]
#[inline(never)]
extern "C" fn raise_null_object() -> c_int {
    guard(|| Err(null_argument("obj")))
}

/// Releases a strong reference.
///
/// # Safety
/// `obj` must be NULL or an object with a strong reference that the caller owns.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIObjectDecRef(obj: TVMFFIObjectHandle) -> c_int {
    if !obj.is_null() {
        // SAFETY: promised by the caller. It doesn't unwind, because a deleter is a C function.
        unsafe { count::dec_ref(obj.cast()) };
    }
    0
}

/// Creates an opaque object.
///
/// # Safety
/// As [`create_opaque`]; `out` must be NULL or writable.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIObjectCreateOpaque(
    handle: *mut c_void,
    type_index: i32,
    deleter: Option<unsafe extern "C" fn(*mut c_void)>,
    out: *mut TVMFFIObjectHandle,
) -> c_int {
    guard(|| {
        let out = required_out(out, "out")?;
        // SAFETY: promised by the caller.
        let object = unsafe { create_opaque(handle, TypeIndex(type_index), deleter)? };
        // SAFETY: not NULL, and writable by contract.
        unsafe { out.write(object.into_raw().cast()) };
        Ok(())
    })
}

/// The current allocator; never NULL.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub extern "C" fn TVMFFIGetCustomAllocator() -> *mut TVMFFICustomAllocator {
    alloc::current_allocator()
}

/// Installs an allocator; NULL restores the builtin one.
///
/// # Safety
/// As [`alloc::set_current_allocator`].
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFISetCustomAllocator(allocator: *mut TVMFFICustomAllocator) -> c_int {
    guard(|| {
        // SAFETY: a non-NULL allocator is valid by contract.
        if unsafe { allocator.as_ref() }.is_some_and(|a| a.allocate.is_none()) {
            return Err(null_argument("allocator->allocate"));
        }
        // SAFETY: promised by the caller.
        unsafe { alloc::set_current_allocator(allocator) };
        Ok(())
    })
}

/// Creates the handle at an address once; other threads wait. A failure code of `init_func` is returned unchanged, with
/// the error that it raised. In upstream all first calls share one lock. Here `init_func` may create other handles with
/// this function, and blocks only the threads that need the same handle.
///
/// # Safety
/// `handle_addr` must be NULL or an aligned pointer that all threads change only through this API; `init_func` must be
/// safe to call.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIHandleInitOnce(
    handle_addr: *mut *mut c_void,
    init_func: Option<unsafe extern "C" fn(*mut *mut c_void) -> c_int>,
) -> c_int {
    if !handle_addr.is_null() {
        // SAFETY: aligned, and only accessed atomically, by contract.
        let handle = unsafe { AtomicPtr::from_ptr(handle_addr) };
        if !handle.load(Ordering::Acquire).is_null() {
            return 0;
        }
    }
    guard_value(-1, || {
        let handle_addr = required_out(handle_addr, "handle_addr")?;
        let init_func = init_func.ok_or_else(|| null_argument("init_func"))?;
        // SAFETY: aligned, and only accessed atomically, by contract.
        let handle = unsafe { AtomicPtr::from_ptr(handle_addr) };
        // SAFETY: promised by the caller.
        init_once(handle, |result| unsafe { init_func(result) })
    })
}

/// Takes the handle out of an address and destroys it, once.
///
/// # Safety
/// As [`TVMFFIHandleInitOnce`]; `deinit_func` must be safe to call with the handle.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIHandleDeinitOnce(
    handle_addr: *mut *mut c_void,
    deinit_func: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
) -> c_int {
    guard_value(-1, || {
        let handle_addr = required_out(handle_addr, "handle_addr")?;
        let deinit_func = deinit_func.ok_or_else(|| null_argument("deinit_func"))?;
        // SAFETY: aligned, and only accessed atomically, by contract.
        let handle = unsafe { AtomicPtr::from_ptr(handle_addr) };
        let old = handle.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if old.is_null() {
            return Ok(0);
        }
        // SAFETY: promised by the caller; only this thread took the handle.
        Ok(unsafe { deinit_func(old) })
    })
}
