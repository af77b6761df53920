//! The stream of a device on which this thread's kernels run.
//! Header: `extra/c_env_api.h`.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;

use crate::abi::DLDevice;
use crate::env;
use crate::error::Result;

/// This thread's stream of a device. If none is set, NULL: the device's default stream.
pub fn current_stream(device: DLDevice) -> *mut c_void {
    env::stream(device)
}

/// Calls `body` with another stream of a device, for this thread.
///
/// ```
/// use tvm_ffi_runtime::{DLDevice, DLDeviceType, current_stream, with_stream};
///
/// let (device, stream) = (DLDevice::new(DLDeviceType::CUDA, 0), std::ptr::dangling_mut());
/// // SAFETY: no kernel is called that would use the stream.
/// let inside = unsafe { with_stream(device, stream, || current_stream(device))? };
/// assert_eq!(inside, stream);
/// assert!(current_stream(device).is_null());
/// # Ok::<(), tvm_ffi_runtime::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for an impossible device. With an external runtime, the error of a missing one.
///
/// # Safety
/// As [`StreamGuard::enter`].
pub unsafe fn with_stream<R>(device: DLDevice, stream: *mut c_void, body: impl FnOnce() -> R) -> Result<R> {
    // SAFETY: promised by the caller; the guard is dropped here.
    let _guard = unsafe { StreamGuard::enter(device, stream)? };
    Ok(body())
}

/// Sets this thread's stream of a device. Dropping the guard restores the stream before. Drop the guards of a device in
/// the reverse order of their creation.
#[must_use = "the stream before is set again when the guard is dropped"]
pub struct StreamGuard {
    device: DLDevice,
    before: *mut c_void,
    /// Streams belong to a thread.
    not_send: PhantomData<*const ()>,
}

impl StreamGuard {
    /// Sets a stream; NULL is the device's default one.
    ///
    /// # Errors
    /// As [`with_stream`].
    ///
    /// # Safety
    /// The stream must belong to that device, and exist while this thread has it set: kernels that safe code calls use
    /// it.
    pub unsafe fn enter(device: DLDevice, stream: *mut c_void) -> Result<Self> {
        let before = env::set_stream(device, stream)?;
        Ok(Self { device, before, not_send: PhantomData })
    }

    /// The device.
    pub fn device(&self) -> DLDevice {
        self.device
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        // The device was accepted before. An ending thread has no streams any more, so its failure is ignored.
        let _outcome = env::set_stream(self.device, self.before);
    }
}

impl fmt::Debug for StreamGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamGuard").field("device", &format_args!("{}", self.device)).finish_non_exhaustive()
    }
}
