//! Functions of an external runtime for lower layers. `none` has the same functions for builds that use this crate's
//! own runtime.

use std::ffi::c_void;

use super::load::api;
use crate::abi::*;

/// True if this crate uses an external runtime.
pub(crate) const IS_USED: bool = true;

/// The allocator of the external runtime; `None` without one.
pub(crate) fn allocator() -> Option<*mut TVMFFICustomAllocator> {
    let get = api().ok()?.TVMFFIGetCustomAllocator?;
    // SAFETY: the function takes no arguments, and its result is valid for the life of the process.
    let current = unsafe { get() };
    (!current.is_null()).then_some(current)
}

/// Sets the external runtime's allocator, and returns whether there is an external runtime.
///
/// # Safety
/// As for `TVMFFISetCustomAllocator`.
pub(crate) unsafe fn set_allocator(allocator: *mut TVMFFICustomAllocator) -> bool {
    let Some(set) = api().ok().and_then(|api| api.TVMFFISetCustomAllocator) else { return false };
    // SAFETY: promised by the caller. A failure can't be reported and leaves the previous allocator in place.
    unsafe { set(allocator) };
    true
}

/// Puts an error into the external runtime's slot of this thread, and returns whether there is an external runtime.
///
/// # Safety
/// The object must be alive.
pub(crate) unsafe fn set_raised(error: *mut c_void) -> bool {
    let Ok(api) = api() else { return false };
    // SAFETY: promised by the caller; the runtime takes its own reference.
    unsafe { (api.TVMFFIErrorSetRaised)(error) };
    true
}

/// Takes the error out of the external runtime's slot of this thread. The caller then owns it. The result is NULL when
/// the slot is empty, and `None` without an external runtime.
pub(crate) fn take_raised() -> Option<*mut c_void> {
    let api = api().ok()?;
    let mut error = std::ptr::null_mut();
    // SAFETY: the variable is writable.
    unsafe { (api.TVMFFIErrorMoveFromRaised)(&raw mut error) };
    Some(error)
}
