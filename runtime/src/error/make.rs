//! Errors that several parts of the crate raise.

use std::fmt;

use super::kind;
use super::memory::formatted;
use super::object::Error;
use super::raised::take_raised;
use crate::abi::TypeIndex;
use crate::heap::alloc::drop_payload;
use crate::type_info;

/// An error with a formatted message.
#[track_caller]
#[cold]
fn error(kind: &str, message: fmt::Arguments<'_>) -> Error {
    match formatted(message) {
        Some(message) => Error::new(kind, &message),
        None => memory_error(),
    }
}

/// The error of a failed allocation. Without memory it is the permanent one.
#[track_caller]
#[cold]
pub(crate) fn memory_error() -> Error {
    Error::new(kind::MEMORY_ERROR, "out of memory")
}

/// The error of a failed allocation of `size` bytes.
#[track_caller]
#[cold]
pub(crate) fn no_memory_for(size: usize, what: &str) -> Error {
    error(kind::MEMORY_ERROR, format_args!("cannot allocate {size} bytes for {what}"))
}

/// The error of a value that has another type than expected.
#[track_caller]
#[cold]
pub(crate) fn type_mismatch(expected: &str, got: TypeIndex) -> Error {
    let got = type_info::key_of(got);
    let more = if got == expected { " that is NULL or laid out by another implementation" } else { "" };
    error(kind::TYPE_ERROR, format_args!("expected {expected}, got {got}{more}"))
}

/// An error of kind `TypeError`.
#[track_caller]
#[cold]
pub(crate) fn type_error(message: &str) -> Error {
    Error::new(kind::TYPE_ERROR, message)
}

/// An error of kind `ValueError`.
#[track_caller]
#[cold]
pub(crate) fn value_error(message: &str) -> Error {
    Error::new(kind::VALUE_ERROR, message)
}

/// An error of kind `RuntimeError`.
#[track_caller]
#[cold]
pub(crate) fn runtime_error(message: &str) -> Error {
    Error::new(kind::RUNTIME_ERROR, message)
}

/// The error of a condition that upstream checks with `TVM_FFI_ICHECK`. The message names the condition.
#[track_caller]
#[cold]
pub(crate) fn check_failed(condition: &str, message: &str) -> Error {
    error(kind::INTERNAL_ERROR, format_args!("Check failed: ({condition}) is false: {message}"))
}

/// The error that represents a panic: kind `InternalError`, with the panic's message.
#[cold]
pub(crate) fn from_panic(payload: Box<dyn std::any::Any + Send>) -> Error {
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let message = formatted(format_args!("panic: {}", text.unwrap_or("(no message)")));
    drop_payload(payload);
    message.map_or_else(memory_error, |message| Error::from_parts(kind::INTERNAL_ERROR, &message, "", None, None))
}

/// The error of an out-of-bounds index.
#[track_caller]
#[cold]
pub(crate) fn index_error(index: impl fmt::Display, len: impl fmt::Display) -> Error {
    error(kind::INDEX_ERROR, format_args!("Index {index} out of bounds {len}"))
}

/// The error of an out-of-bounds range.
#[track_caller]
#[cold]
pub(crate) fn range_error(start: impl fmt::Display, end: impl fmt::Display, len: usize) -> Error {
    error(kind::INDEX_ERROR, format_args!("Erase range [{start}, {end}) out of bounds {len}"))
}

/// The raised error that a non-zero return code reports.
#[cold]
#[track_caller]
pub(crate) fn raised_error(code: i32) -> Error {
    take_raised().unwrap_or_else(|| {
        if code == -1 {
            runtime_error("the function failed with code -1 but raised no error")
        } else {
            error(kind::RUNTIME_ERROR, format_args!("the function failed with code {code}"))
        }
    })
}
