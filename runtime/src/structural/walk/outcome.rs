//! Outcomes of visits and maps, as Rust results and as the values that C code passes.
//! Rules: upstream's `Expected`, `UnchangedOr`.

use super::context::annotated;
use crate::abi::*;
use crate::any::Any;
use crate::error::{Error, Result, runtime_error, type_error};

/// Why a visit ends before its end.
pub(super) enum Stop {
    /// The interrupt, as a value.
    Interrupt(Any),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The outcome of a visit.
pub(super) type Outcome<T = ()> = std::result::Result<T, Stop>;

/// The outcome that a value stands for.
pub(super) fn outcome_of(value: Any) -> Outcome {
    let value = checked(value)?;
    match value.type_index() {
        TypeIndex::VISIT_INTERRUPT => Err(Stop::Interrupt(value)),
        _ => Ok(()),
    }
}

/// The value that stands for an outcome.
pub(super) fn value_of(outcome: Outcome) -> Any {
    match outcome {
        Ok(()) => Any::none(),
        Err(Stop::Interrupt(interrupt)) => interrupt,
        Err(Stop::Failed(error)) => error.into(),
    }
}

/// The result of a global function that visits: None, or the interrupt.
///
/// # Errors
/// The error of the visit.
pub(super) fn result_of(outcome: Outcome) -> Result<Any> {
    match outcome {
        Ok(()) => Ok(Any::none()),
        Err(Stop::Interrupt(interrupt)) => Ok(interrupt),
        Err(Stop::Failed(error)) => Err(error),
    }
}

impl Stop {
    /// Adds a value to an error's context.
    pub(super) fn at(self, value: &Any) -> Self {
        match self {
            Self::Failed(error) => Self::Failed(annotated(error, &value.as_view())),
            interrupt => interrupt,
        }
    }
}

/// The outcome of a callback or hook that returns None or an interrupt.
pub(super) fn visit_result(result: Result<Any>) -> Outcome {
    let value = checked(result?)?;
    match value.type_index() {
        TypeIndex::NONE => Ok(()),
        TypeIndex::VISIT_INTERRUPT => Err(Stop::Interrupt(value)),
        _ => Err(Stop::Failed(unexpected("Optional<ffi.VisitInterrupt>", &value))),
    }
}

/// The error of a callback or hook that returned a value of another type.
#[cold]
pub(super) fn unexpected(expected: &str, got: &Any) -> Error {
    type_error(&format!("CallExpected: result type mismatch, expected {expected}, but got {}", got.type_key()))
}

/// An error in a value, which C code returns in place of a result.
///
/// # Errors
/// That error.
pub(super) fn checked(value: Any) -> Result<Any> {
    match value.type_index() {
        TypeIndex::ERROR => Err(value.into_object().and_then(|error| error.downcast().ok()).unwrap_or_else(no_error)),
        _ => Ok(value),
    }
}

#[cold]
fn no_error() -> Error {
    runtime_error("a NULL error")
}

/// The mark that stands for the value itself.
pub(super) fn unchanged() -> Any {
    // SAFETY: the mark owns nothing.
    unsafe { Any::from_raw(TVMFFIAny::from_bits(TypeIndex::UNCHANGED, 0)) }
}

pub(super) fn is_unchanged(result: &Any) -> bool {
    result.type_index() == TypeIndex::UNCHANGED
}

/// A result, with `value` in the place of the mark.
pub(super) fn or_unchanged(result: Any, value: Any) -> Any {
    if is_unchanged(&result) { value } else { result }
}

/// True if two values have the same bits.
pub(super) fn is_same(one: &Any, other: &Any) -> bool {
    let (one, other) = (one.as_raw(), other.as_raw());
    (one.type_index, one.zero_padding, one.bits()) == (other.type_index, other.zero_padding, other.bits())
}
