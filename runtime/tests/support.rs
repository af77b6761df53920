//! Helpers of the other test modules.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use tvm_ffi_runtime::abi::TVMFFIByteArray;
use tvm_ffi_runtime::error::take_raised;
use tvm_ffi_runtime::{Any, Error, ObjectRef};

pub fn bytes(text: &str) -> TVMFFIByteArray {
    TVMFFIByteArray::from_slice(text.as_bytes())
}

/// The error behind a C function's -1.
pub fn raised(code: i32) -> Error {
    assert_eq!(code, -1);
    take_raised().unwrap()
}

/// A deleter that adds one to the counter that its handle points at.
pub unsafe extern "C" fn count_up(counter: *mut c_void) {
    // SAFETY: tests pass a pointer to a counter that they keep alive.
    unsafe { &*counter.cast::<AtomicUsize>() }.fetch_add(1, Ordering::SeqCst);
}

pub fn counter_ptr(counter: &AtomicUsize) -> *mut c_void {
    std::ptr::from_ref(counter).cast_mut().cast()
}

/// Owns the object behind a handle that C handed out.
pub fn own<T: TryFrom<Any>>(handle: *mut c_void) -> T {
    // SAFETY: tests pass handles whose reference they own.
    let object = unsafe { ObjectRef::from_raw(handle.cast()) }.unwrap();
    T::try_from(Any::from(object)).ok().unwrap()
}
