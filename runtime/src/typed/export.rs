//! The code that the macro `export` calls from a C symbol.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use super::function::TypedFunction;
use super::schema::metadata;
use crate::abi::{TVMFFIAny, TypeIndex};
use crate::any::{Any, AnyView};
use crate::error::{Result, from_panic, runtime_error, set_raised};
use crate::host::{check_runtime, raise_elsewhere};

/// Runs the body of an exported function. Returns 0 with the result written, or -1 with the error raised.
///
/// # Safety
/// The arguments must meet the requirements of a [`TVMFFISafeCallType`](crate::abi::TVMFFISafeCallType) call.
pub unsafe fn run(
    args: *const TVMFFIAny,
    num_args: i32,
    result: *mut TVMFFIAny,
    body: impl FnOnce(&[AnyView<'_>]) -> Result<Any>,
) -> i32 {
    let call = || {
        check_caller()?;
        // SAFETY: the caller's result is NULL or readable; only its type index is read.
        match unsafe { result.as_ref() } {
            None => return Err(runtime_error("result is NULL")),
            Some(result) if TypeIndex(result.type_index).is_object() => {
                return Err(runtime_error("result must be initialised to None"));
            }
            Some(_) => {}
        }
        // SAFETY: promised by the caller.
        body(unsafe { AnyView::slice_from_raw(args, num_args) })
    };
    let error = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => {
            // SAFETY: checked to be non-NULL, and writable; it owns nothing.
            unsafe { result.write(value.into_raw()) };
            return 0;
        }
        Ok(Err(error)) => error,
        Err(payload) => from_panic(payload),
    };
    raise(error);
    -1
}

/// Checks once that the caller uses the same runtime. A caller on another runtime would find neither errors nor types.
fn check_caller() -> Result<()> {
    static IS_FINE: AtomicBool = AtomicBool::new(false);
    if IS_FINE.load(Ordering::Relaxed) {
        return Ok(());
    }
    check_runtime()?;
    IS_FINE.store(true, Ordering::Relaxed);
    Ok(())
}

/// Raises an error in the slot where the caller looks for it. If the process uses another runtime, this is the other
/// runtime's slot.
fn raise(error: crate::error::Error) {
    if !raise_elsewhere(error.kind(), error.message()) {
        set_raised(error);
    }
}

/// Calls a typed function, with its exported name for messages.
///
/// # Errors
/// As [`TypedFunction::call_typed`].
pub fn call<Args>(name: &str, function: &impl TypedFunction<Args>, args: &[AnyView<'_>]) -> Result<Any> {
    function.call_typed(name, args)
}

/// The metadata of a typed function.
pub fn metadata_of<Args, F: TypedFunction<Args>>(_function: &F) -> Any {
    metadata(&F::schema()).into()
}

/// The metadata of a function that takes any arguments.
pub fn packed_metadata() -> Any {
    metadata("{\"type\":\"ffi.Function\"}").into()
}
