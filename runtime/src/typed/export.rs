//! What the macro `export` puts behind a C symbol.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use super::function::TypedFunction;
use super::schema::metadata;
use crate::abi::{TVMFFIAny, TypeIndex};
use crate::any::{Any, AnyView};
use crate::error::{Result, from_panic, runtime_error, set_raised};
use crate::host::check_runtime;

/// Runs the body of an exported function: 0 with the result written, or -1 with the error raised.
///
/// # Safety
/// As [`TVMFFISafeCallType`](crate::abi::TVMFFISafeCallType) says of a call.
pub unsafe fn run(
    args: *const TVMFFIAny,
    num_args: i32,
    result: *mut TVMFFIAny,
    body: impl FnOnce(&[AnyView<'_>]) -> Result<Any>,
) -> i32 {
    let call = || {
        check_caller()?;
        // SAFETY: the caller's result is NULL or readable; only its type index is looked at.
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
            // SAFETY: not NULL, as was checked, and writable; it owns nothing.
            unsafe { result.write(value.into_raw()) };
            return 0;
        }
        Ok(Err(error)) => error,
        Err(payload) => from_panic(payload),
    };
    raise(error);
    -1
}

/// Once: a caller on another runtime would find neither errors nor types.
fn check_caller() -> Result<()> {
    static IS_FINE: AtomicBool = AtomicBool::new(false);
    if IS_FINE.load(Ordering::Relaxed) {
        return Ok(());
    }
    check_runtime()?;
    IS_FINE.store(true, Ordering::Relaxed);
    Ok(())
}

/// Raises an error where its caller looks for it: in the slot of the runtime that the process uses, should that be another one.
fn raise(error: crate::error::Error) {
    #[cfg(not(feature = "external"))]
    if crate::host::raise_elsewhere(error.kind(), error.message()) {
        return;
    }
    set_raised(error);
}

/// Calls a typed function by its exported name.
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

/// The metadata of a function of any arguments.
pub fn packed_metadata() -> Any {
    metadata("{\"type\":\"ffi.Function\"}").into()
}
