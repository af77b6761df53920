//! Rust values that take a call as it comes: raw arguments and a raw result. A value can then forward a call without a
//! copy. No header section: this is the Rust side of `TVMFFISafeCallType`.

use crate::abi::TVMFFIAny;

/// A value that a function calls with the raw arguments of each call: see `Function::from_callable`.
///
/// # Safety
/// [`call`](Callable::call) must follow `TVMFFISafeCallType` for any arguments that are valid by their type indices,
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
