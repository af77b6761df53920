//! C symbols of errors: the thread's slot, creation, and the backtrace text. A function without a return value can't
//! report a NULL argument, so it ignores one. Header sections: `TVMFFIError...`, `TVMFFIBacktrace`.

use std::cell::RefCell;
use std::ffi::{c_char, c_int};

use super::call::check_type;
use crate::abi::*;
use crate::boundary::{c_bytes, guard_value, required_bytes, required_out};
use crate::error::{self, Error, Result, memory_error};
use crate::heap::{AsObject, ObjectRef};

/// Moves the raised error out of this thread's slot; `*result` is NULL when there is none.
///
/// # Safety
/// `result` must be NULL or writable.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIErrorMoveFromRaised(result: *mut TVMFFIObjectHandle) {
    if result.is_null() {
        return;
    }
    let handle = error::take_raised().map_or(std::ptr::null_mut(), |error| error.into_object().into_raw().cast());
    // SAFETY: `result` is not NULL, and writable by contract.
    unsafe { result.write(handle) };
}

/// Puts an error into this thread's slot; the caller keeps its reference. NULL empties the slot, as in upstream. If the
/// object is not an error, a `TypeError` is raised instead.
///
/// # Safety
/// `error` must be NULL or an object that is alive.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIErrorSetRaised(error: TVMFFIObjectHandle) {
    // SAFETY: promised by the caller.
    match unsafe { ObjectRef::clone_from_raw(error.cast()) } {
        Some(object) => match Error::try_from(object) {
            Ok(error) | Err(error) => error::set_raised(error),
        },
        None => drop(error::take_raised()),
    }
}

/// Raises an error from two C strings; NULL strings are empty.
///
/// # Safety
/// Both must be NULL or NUL-terminated strings.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIErrorSetRaisedFromCStr(kind: *const c_char, message: *const c_char) {
    // SAFETY: promised by the caller.
    unsafe { raise_parts(kind, &[message]) };
}

/// Raises an error whose message is a sequence of C strings; NULL parts are skipped.
///
/// # Safety
/// `kind` and each part must be NULL or NUL-terminated strings; `message_parts` must be NULL or
/// hold `num_parts` of them.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIErrorSetRaisedFromCStrParts(
    kind: *const c_char,
    message_parts: *const *const c_char,
    num_parts: i32,
) {
    let parts = if message_parts.is_null() || num_parts <= 0 {
        &[]
    } else {
        // SAFETY: promised by the caller.
        unsafe { std::slice::from_raw_parts(message_parts, num_parts as usize) }
    };
    // SAFETY: promised by the caller.
    unsafe { raise_parts(kind, parts) };
}

/// # Safety
/// All pointers must be NULL or NUL-terminated strings.
unsafe fn raise_parts(kind: *const c_char, parts: &[*const c_char]) {
    guard_value((), || {
        // SAFETY: promised by the caller.
        let (kind, parts) = unsafe { (c_bytes(kind), parts.iter().map(|&part| c_bytes(part))) };
        let mut message = Vec::new();
        message.try_reserve_exact(parts.clone().map(<[u8]>::len).sum()).map_err(|_| memory_error())?;
        parts.for_each(|part| message.extend_from_slice(part));
        let backtrace = error::c_backtrace(false);
        error::set_raised(Error::from_bytes(kind, &message, backtrace.as_bytes(), None, None));
        Ok(())
    });
}

/// Creates an error. A failure returns -1 and raises nothing, as the header says.
///
/// # Safety
/// As [`TVMFFIErrorCreateWithCauseAndExtraContext`].
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIErrorCreate(
    kind: *const TVMFFIByteArray,
    message: *const TVMFFIByteArray,
    backtrace: *const TVMFFIByteArray,
    out: *mut TVMFFIObjectHandle,
) -> c_int {
    let none = std::ptr::null_mut();
    // SAFETY: promised by the caller.
    unsafe { TVMFFIErrorCreateWithCauseAndExtraContext(kind, message, backtrace, none, none, out) }
}

/// Creates an error with its cause and further context, and the caller keeps its references to both. A failure (a NULL
/// argument, a cause that is not an error) returns -1 and raises nothing.
///
/// # Safety
/// Pointers must be NULL or valid as the header says.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIErrorCreateWithCauseAndExtraContext(
    kind: *const TVMFFIByteArray,
    message: *const TVMFFIByteArray,
    backtrace: *const TVMFFIByteArray,
    cause_chain: TVMFFIObjectHandle,
    extra_context: TVMFFIObjectHandle,
    out: *mut TVMFFIObjectHandle,
) -> c_int {
    let body = || -> Result<()> {
        let out = required_out(out, "out")?;
        if !cause_chain.is_null() {
            check_type(cause_chain, TypeIndex::ERROR, "cause_chain")?;
        }
        // SAFETY: promised by the caller.
        let error = unsafe {
            Error::from_bytes(
                required_bytes(kind, "kind")?,
                required_bytes(message, "message")?,
                // Upstream requires a backtrace; here a missing one is empty.
                required_bytes(backtrace, "backtrace").unwrap_or_default(),
                ObjectRef::clone_from_raw(cause_chain.cast()),
                ObjectRef::clone_from_raw(extra_context.cast()),
            )
        };
        // SAFETY: `out` is not NULL, and writable by contract.
        unsafe { out.write(error.into_object().into_raw().cast()) };
        Ok(())
    };
    // The inner result keeps an error away from the slot.
    match guard_value(Ok(()), || Ok(body())) {
        Ok(()) => 0,
        Err(_) => -1,
    }
}

thread_local! {
    static BACKTRACE: RefCell<(Vec<u8>, Box<TVMFFIByteArray>)> =
        RefCell::new((Vec::new(), Box::new(TVMFFIByteArray::EMPTY)));
}

/// The calling thread's stack, most recent call first, by the policy of [`Error`]: only the given place, or the whole
/// stack if that is enabled. It ends where one language calls another, unless `cross_ffi_boundary` is set. The result
/// is valid until the thread's next call.
///
/// # Safety
/// `filename` and `func` must be NULL or NUL-terminated strings.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIBacktrace(
    filename: *const c_char,
    lineno: c_int,
    func: *const c_char,
    cross_ffi_boundary: c_int,
) -> *const TVMFFIByteArray {
    static EMPTY: SyncBytes = SyncBytes(TVMFFIByteArray::EMPTY);
    let empty = &raw const EMPTY.0;
    guard_value(empty, || {
        let text = if filename.is_null() || func.is_null() {
            error::c_backtrace(cross_ffi_boundary != 0)
        } else {
            // SAFETY: promised by the caller.
            let (file, func) =
                unsafe { (String::from_utf8_lossy(c_bytes(filename)), String::from_utf8_lossy(c_bytes(func))) };
            error::c_backtrace_at(&file, u32::try_from(lineno).unwrap_or(0), &func, cross_ffi_boundary != 0)
        };
        let stored = BACKTRACE.try_with(|place| {
            let (bytes, array) = &mut *place.borrow_mut();
            *bytes = text.into_bytes();
            **array = TVMFFIByteArray::from_slice(bytes);
            &raw const **array
        });
        Ok(stored.unwrap_or(empty))
    })
}

struct SyncBytes(TVMFFIByteArray);
// SAFETY: the array is empty and never changes.
unsafe impl Sync for SyncBytes {}
