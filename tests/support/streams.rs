//! A separate stream for each device, so tests can identify the stream that a kernel receives.

use std::cell::Cell;
use std::ffi::c_void;

use tvm_ffi_codegen::DLDeviceType;
use tvm_ffi_codegen::runtime::abi::DLDevice;

use super::c_api::TVMFFIEnvSetStream;

const KINDS: std::ops::Range<i32> = 1..19;
const IDS: std::ops::Range<i32> = 0..4;

/// The stream of a device; NULL for a device without streams.
pub fn stream_of(DLDevice { device_type: DLDeviceType(kind), device_id: id }: DLDevice) -> u64 {
    if KINDS.contains(&kind) && IDS.contains(&id) { 0x57_0000 + 16 * kind as u64 + id as u64 } else { 0 }
}

/// Sets the streams of this thread, unless they are already set.
pub fn set_all() {
    thread_local! {
        static SET: Cell<bool> = const { Cell::new(false) };
    }
    if SET.replace(true) {
        return;
    }
    for kind in KINDS {
        for id in IDS {
            let stream = stream_of(DLDevice::new(DLDeviceType(kind), id));
            let stream: *mut c_void = std::ptr::without_provenance_mut(stream as usize);
            // SAFETY: the pointer for the old stream may be NULL, and the new stream is never dereferenced.
            assert_eq!(unsafe { TVMFFIEnvSetStream(kind, id, stream, std::ptr::null_mut()) }, 0);
        }
    }
}
