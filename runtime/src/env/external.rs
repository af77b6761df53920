//! The streams of an external runtime. Its allocator and its signals are C code's own concern.
//! Header: `extra/c_env_api.h`.

use std::ffi::c_void;

use crate::abi::*;
use crate::error::{Result, checked, value_error};
use crate::external::api;

/// Sets this thread's stream of a device and returns the one before, NULL if there was none.
pub(crate) fn set_stream(device: DLDevice, stream: *mut c_void) -> Result<*mut c_void> {
    if device.device_type.0 < 0 || device.device_id < 0 {
        return Err(value_error(&format!("no such device: {device}")));
    }
    let mut old = std::ptr::null_mut();
    // SAFETY: the place is writable.
    checked(|api| unsafe { (api.TVMFFIEnvSetStream)(device.device_type.0, device.device_id, stream, &raw mut old) })?;
    Ok(old)
}

/// This thread's stream of a device, NULL if none is set.
pub(crate) fn stream(device: DLDevice) -> *mut c_void {
    if device.device_type.0 < 0 || device.device_id < 0 {
        return std::ptr::null_mut();
    }
    // SAFETY: any device may be asked for.
    api()
        .map_or(std::ptr::null_mut(), |api| unsafe { (api.TVMFFIEnvGetStream)(device.device_type.0, device.device_id) })
}
