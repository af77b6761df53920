//! Errors that several parts of the crate raise.

use std::fmt;

use super::kind;
use super::object::Error;
use super::raised::take_raised;
use crate::abi::TypeIndex;
use crate::heap::alloc::drop_payload;
use crate::type_info;

/// The error of a value whose type differs from what is expected.
#[track_caller]
#[cold]
pub(crate) fn type_mismatch(expected: &str, got: TypeIndex) -> Error {
    let mut got = type_info::key_of(got);
    if got == expected {
        got.push_str(" that is NULL or laid out by another implementation");
    }
    Error::new(kind::TYPE_ERROR, &format!("expected {expected}, got {got}"))
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

/// The error of a condition that upstream checks by `TVM_FFI_ICHECK`, which is named in its text.
#[track_caller]
#[cold]
pub(crate) fn check_failed(condition: &str, message: &str) -> Error {
    Error::new(kind::INTERNAL_ERROR, &format!("Check failed: ({condition}) is false: {message}"))
}

/// The error that stands for a panic: kind `InternalError`, the panic's message.
#[cold]
pub(crate) fn from_panic(payload: Box<dyn std::any::Any + Send>) -> Error {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "(no message)".to_owned());
    drop_payload(payload);
    Error::from_parts(kind::INTERNAL_ERROR, &format!("panic: {text}"), "", None, None)
}

/// The error of an external runtime that isn't there.
#[cfg(feature = "external")]
impl From<crate::external::Unavailable> for Error {
    #[track_caller]
    #[cold]
    fn from(why: crate::external::Unavailable) -> Self {
        runtime_error(&why.to_string())
    }
}

/// The error of an index that is out of bounds.
#[track_caller]
#[cold]
pub(crate) fn index_error(index: impl fmt::Display, len: impl fmt::Display) -> Error {
    Error::new(kind::INDEX_ERROR, &format!("Index {index} out of bounds {len}"))
}

/// The error of a range that is out of bounds.
#[track_caller]
#[cold]
pub(crate) fn range_error(start: impl fmt::Display, end: impl fmt::Display, len: usize) -> Error {
    Error::new(kind::INDEX_ERROR, &format!("Erase range [{start}, {end}) out of bounds {len}"))
}

/// The error behind a return code that is not zero.
#[cold]
#[track_caller]
pub(crate) fn raised_error(code: i32) -> Error {
    take_raised().unwrap_or_else(|| {
        if code == -1 {
            runtime_error("the function failed with code -1 but raised no error")
        } else {
            runtime_error(&format!("the function failed with code {code}"))
        }
    })
}
