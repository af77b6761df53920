//! C symbols of the environment: streams, tensor allocation, signals. Header: `extra/c_env_api.h`; the symbols that
//! manage modules are in `modules`. Without an allocator set, `TVMFFIEnvTensorAlloc` allocates on the CPU (upstream
//! fails).

use std::ffi::{c_char, c_int, c_void};

use crate::abi::*;
use crate::boundary::{c_bytes, guard, guard_value, null_argument, required_out};
use crate::env;
use crate::heap::AsObject;

/// Handle of a stream.
pub type TVMFFIStreamHandle = *mut c_void;

/// Sets this thread's stream for a device.
///
/// # Safety
/// `opt_out_original_stream` must be NULL or writable.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIEnvSetStream(
    device_type: i32,
    device_id: i32,
    stream: TVMFFIStreamHandle,
    opt_out_original_stream: *mut TVMFFIStreamHandle,
) -> c_int {
    guard(|| {
        let device = DLDevice::new(DLDeviceType(device_type), device_id);
        let old = env::set_stream(device, stream)?;
        if !opt_out_original_stream.is_null() {
            // SAFETY: not NULL, and writable by contract.
            unsafe { opt_out_original_stream.write(old) };
        }
        Ok(())
    })
}

/// This thread's stream for a device; NULL when none is set.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub extern "C" fn TVMFFIEnvGetStream(device_type: i32, device_id: i32) -> TVMFFIStreamHandle {
    guard_value(std::ptr::null_mut(), || {
        let device = DLDevice::new(DLDeviceType(device_type), device_id);
        Ok(env::stream(device))
    })
}

/// Sets the allocator of this thread, and on request that of the process.
///
/// # Safety
/// The allocator must follow `dlpack.h`; the out pointer must be NULL or writable.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIEnvSetDLPackManagedTensorAllocator(
    allocator: Option<DLPackManagedTensorAllocator>,
    write_to_global_context: c_int,
    opt_out_original_allocator: *mut Option<DLPackManagedTensorAllocator>,
) -> c_int {
    guard(|| {
        let old = env::set_allocator(allocator, write_to_global_context != 0);
        if !opt_out_original_allocator.is_null() {
            // SAFETY: not NULL, and writable by contract.
            unsafe { opt_out_original_allocator.write(old) };
        }
        Ok(())
    })
}

/// The allocator of this thread, or else that of the process; NULL when neither is set.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub extern "C" fn TVMFFIEnvGetDLPackManagedTensorAllocator() -> Option<DLPackManagedTensorAllocator> {
    guard_value(None, || Ok(env::allocator()))
}

/// Allocates a tensor like the prototype.
///
/// # Safety
/// `prototype` must be NULL or have device, type and shape filled; `out` NULL or writable.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIEnvTensorAlloc(prototype: *mut DLTensor, out: *mut TVMFFIObjectHandle) -> c_int {
    guard(|| {
        let out = required_out(out, "out")?;
        let prototype = required_out(prototype, "prototype")?;
        // SAFETY: neither is NULL; the rest is promised by the caller.
        unsafe {
            let tensor = env::alloc_tensor(prototype)?;
            out.write(tensor.into_object().into_raw().cast());
        }
        Ok(())
    })
}

/// Lets the surrounding environment handle its signals. Returns -1 if a handler sets an error in the environment. The
/// environment then holds the error, and this function raises none.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub extern "C" fn TVMFFIEnvCheckSignals() -> c_int {
    guard_value(-1, || Ok(if env::check_signals()? { 0 } else { -1 }))
}

/// Registers a function of the surrounding environment.
///
/// # Safety
/// `name` must be NULL or NUL-terminated; `symbol` the function of that name.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIEnvRegisterCAPI(name: *const c_char, symbol: *mut c_void) -> c_int {
    guard(|| {
        if name.is_null() {
            return Err(null_argument("name"));
        }
        // SAFETY: promised by the caller.
        unsafe {
            let name = String::from_utf8_lossy(c_bytes(name)).into_owned();
            env::register_api(&name, symbol)
        }
    })
}
