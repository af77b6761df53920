//! The boundary of C functions: the guard around their bodies, and the checks of their arguments.

use std::any::Any;
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::TVMFFIByteArray;
use crate::error::{Error, Result, from_panic, kind, set_raised};

/// Runs the body of a C function: 0 for success, or -1 with the error raised.
#[inline]
pub(crate) fn guard(body: impl FnOnce() -> Result<()>) -> c_int {
    guard_value(-1, || body().map(|()| 0))
}

/// Runs the body of a C function that returns a value. If it fails, raises the error and returns `failure`.
#[inline]
pub(crate) fn guard_value<T>(failure: T, body: impl FnOnce() -> Result<T>) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => {
            raise(error);
            failure
        }
        Err(payload) => {
            raise_panic(payload);
            failure
        }
    }
}

#[cold]
#[inline(never)]
fn raise(error: Error) {
    set_raised(error);
}

#[cold]
#[inline(never)]
fn raise_panic(payload: Box<dyn Any + Send>) {
    set_raised(from_panic(payload));
}

/// The error of an argument that must not be NULL.
#[cold]
#[inline(never)]
pub(crate) fn null_argument(name: &str) -> Error {
    Error::new(kind::VALUE_ERROR, &format!("argument `{name}` is NULL"))
}

/// Borrows an argument that must not be NULL.
///
/// # Safety
/// A non-NULL pointer must be valid to read for `'a`.
#[inline]
pub(crate) unsafe fn required<'a, T>(ptr: *const T, name: &str) -> Result<&'a T> {
    // SAFETY: promised by the caller.
    unsafe { ptr.as_ref() }.ok_or_else(|| null_argument(name))
}

/// Checks that an out argument is not NULL.
#[inline]
pub(crate) fn required_out<T>(ptr: *mut T, name: &str) -> Result<*mut T> {
    if ptr.is_null() {
        return Err(null_argument(name));
    }
    Ok(ptr)
}

/// The bytes of a byte-array argument that must not be NULL.
///
/// # Safety
/// A non-NULL pointer must be a valid byte array for `'a`.
#[inline]
pub(crate) unsafe fn required_bytes<'a>(ptr: *const TVMFFIByteArray, name: &str) -> Result<&'a [u8]> {
    // SAFETY: promised by the caller.
    unsafe { required(ptr, name).map(|array| array.as_slice()) }
}

/// The text of a byte-array argument that must not be NULL. Invalid UTF-8 is replaced.
///
/// # Safety
/// As [`required_bytes`].
pub(crate) unsafe fn required_text(ptr: *const TVMFFIByteArray, name: &str) -> Result<String> {
    // SAFETY: promised by the caller.
    let bytes = unsafe { required_bytes(ptr, name)? };
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

/// The bytes of a C string; empty for NULL.
///
/// # Safety
/// A non-NULL pointer must be a NUL-terminated string for `'a`.
pub(crate) unsafe fn c_bytes<'a>(ptr: *const c_char) -> &'a [u8] {
    if ptr.is_null() {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { CStr::from_ptr(ptr) }.to_bytes()
}
