//! Attributes whose values are addresses of C functions. Such a function returns its error as its value.
//! Header section: upstream's `reflection/native_function.h`.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::TVMFFIAny;
use crate::any::Any;
use crate::error::{Result, from_panic};

/// The value of an attribute: the address of a function.
///
/// # Safety
/// The function must have the type that callers of the attribute expect.
pub(crate) unsafe fn address(function: *const ()) -> Any {
    // SAFETY: promised by the caller.
    unsafe { Any::from_opaque_ptr(function.cast_mut().cast::<c_void>()) }
}

/// The result of such a function.
pub(crate) fn outcome(body: impl FnOnce() -> Result<Any>) -> TVMFFIAny {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| Err(from_panic(payload)));
    result.unwrap_or_else(Any::from).into_raw()
}
