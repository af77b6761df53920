//! The streams and the allocator of an external runtime. Only C code handles its signals. Header: `extra/c_env_api.h`.

use std::ffi::c_void;

use crate::abi::*;
use crate::error::external::checked;
use crate::error::{Result, runtime_error, value_error};
use crate::external::api;

/// Sets this thread's stream of a device and returns the one before; NULL if there was none.
pub(crate) fn set_stream(device: DLDevice, stream: *mut c_void) -> Result<*mut c_void> {
    if device.device_type.0 < 0 || device.device_id < 0 {
        return Err(value_error(&format!("no such device: {device}")));
    }
    let mut old = std::ptr::null_mut();
    // SAFETY: the place is writable.
    checked(|api| unsafe { (api.TVMFFIEnvSetStream)(device.device_type.0, device.device_id, stream, &raw mut old) })?;
    Ok(old)
}

/// This thread's stream of a device; NULL if none is set.
pub(crate) fn stream(device: DLDevice) -> *mut c_void {
    if device.device_type.0 < 0 || device.device_id < 0 {
        return std::ptr::null_mut();
    }
    // SAFETY: any device may be asked for.
    api()
        .map_or(std::ptr::null_mut(), |api| unsafe { (api.TVMFFIEnvGetStream)(device.device_type.0, device.device_id) })
}

/// Sets the process's allocator.
pub(crate) fn set_process_allocator(allocator: DLPackManagedTensorAllocator) -> Result<()> {
    checked(|api| {
        let set = api.TVMFFIEnvSetDLPackManagedTensorAllocator;
        // SAFETY: passes an allocator, and NULL for the previous one.
        set.map_or(0, |set| unsafe { set(Some(allocator), 1, std::ptr::null_mut()) })
    })?;
    match api()?.TVMFFIEnvSetDLPackManagedTensorAllocator {
        Some(_) => Ok(()),
        None => Err(runtime_error("this libtvm_ffi has no TVMFFIEnvSetDLPackManagedTensorAllocator")),
    }
}

/// Sets an allocator in a thread and a process that have none.
pub(crate) fn set_last_allocator(allocator: DLPackManagedTensorAllocator) -> Result<()> {
    let api = api()?;
    let (get, set) = (api.TVMFFIEnvGetDLPackManagedTensorAllocator, api.TVMFFIEnvSetDLPackManagedTensorAllocator);
    let (Some(get), Some(set)) = (get, set) else { return Ok(()) };
    // SAFETY: any thread may call it.
    if unsafe { get() }.is_some() {
        return Ok(());
    }
    let mut old = None;
    // SAFETY: passes an allocator, and a place for this thread's previous one.
    checked(|_| unsafe { set(Some(allocator), 1, &raw mut old) })?;
    // The call has set this thread's allocator too, and that would override one that another thread sets for the
    // process. So restore the thread's.
    // SAFETY: passes the allocator that this thread had, which is none.
    checked(|_| unsafe { set(old, 0, std::ptr::null_mut()) })
}
