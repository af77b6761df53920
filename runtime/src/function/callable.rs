//! Functions from Rust values that take a call as it comes: raw arguments and a raw result. A value can then forward a
//! call without a copy. No header section: this is the Rust side of `TVMFFISafeCallType`.

use std::ffi::c_void;

use super::{Function, FunctionObject};
use crate::abi::*;

/// A value that a function calls with the raw arguments of each call; see [`Function::from_callable`].
///
/// # Safety
/// [`call`](Callable::call) must follow [`TVMFFISafeCallType`] for any arguments that are valid by their type indices,
/// and must not unwind. You are responsible for what it writes through its arguments, because its callers are safe
/// Rust.
pub unsafe trait Callable: Send + Sync + 'static {
    /// Makes one call. Returns 0, or another code with an error raised.
    ///
    /// # Safety
    /// `args` must point at `num_args` values that are valid for the call; it may be NULL if there are none. `result`
    /// must be None, which owns nothing.
    unsafe fn call(&self, args: *const TVMFFIAny, num_args: i32, result: *mut TVMFFIAny) -> i32;
}

impl Function {
    /// A function that calls a value with the raw arguments and the caller's result. The last reference drops the
    /// value.
    ///
    /// Prefer [`Function::from_packed`], unless the value forwards its calls: here nothing is checked, and a panic ends
    /// the process.
    pub fn from_callable(value: impl Callable) -> Self {
        fn make<T: Callable>(value: T) -> Function {
            Function::with_payload(call_value::<T>, value)
        }
        make(value)
    }
}

/// The callable of [`Function::from_callable`].
unsafe extern "C" fn call_value<T: Callable>(
    handle: *mut c_void,
    args: *const TVMFFIAny,
    num_args: i32,
    result: *mut TVMFFIAny,
) -> i32 {
    // SAFETY: the handle is the function object that holds this callable, alive for the call. The arguments are passed
    // on under the same convention.
    unsafe { (*handle.cast::<FunctionObject<T>>()).payload.call(args, num_args, result) }
}
