//! Map policies: which callbacks run at each value, and when.
//! Rules: upstream's `StructuralMapDynEngine`, `StructuralMutateDynEngine`.

use super::callbacks::Callbacks;
use super::context::annotated;
use super::outcome::{checked, is_same, is_unchanged};
use super::policy::{Links, Order};
use crate::any::Any;
use crate::error::Result;
use crate::heap::ObjectRef;

/// A mutator's behaviour at each value.
pub(super) enum Policy {
    /// `ffi.StructuralMap`.
    Map(Order, Links),
    /// `ffi.StructuralMutate`: a callback replaces the descent into its value.
    Mutate(Callbacks),
}

/// The next step for a value after its first callback.
pub(super) enum Plan {
    /// This is the result.
    Result(Any),
    /// Descend into the value.
    Descend,
    /// Descend into this replacement.
    Replace(Any),
}

impl Policy {
    /// Runs the callbacks that come before the values inside.
    ///
    /// # Errors
    /// The error of a callback.
    pub(super) fn before(&self, mutator: &ObjectRef, region: i32, value: &Any, in_place: bool) -> Result<Plan> {
        let result = match self {
            Self::Map(Order::Pre, links) => links.call(value, region),
            Self::Map(Order::Post, _) => None,
            Self::Mutate(callbacks) => callbacks.find(value.type_index()).map(|callback| match callback.takes_mode {
                true => callback.function.call((value, mutator, i64::from(in_place))),
                false => callback.function.call((value, mutator)),
            }),
        };
        let Some(result) = result else { return Ok(Plan::Descend) };
        let result = result.and_then(checked).map_err(|error| annotated(error, &value.as_view()))?;
        Ok(match self {
            Self::Mutate(_) => Plan::Result(result),
            Self::Map(..) if is_unchanged(&result) || is_same(&result, value) => Plan::Descend,
            Self::Map(..) => Plan::Replace(result),
        })
    }

    /// Runs the callbacks that come after the values inside. `descended` is the descent's result for `value`.
    ///
    /// # Errors
    /// The error of a callback.
    pub(super) fn after(&self, region: i32, value: &Any, descended: Any) -> Result<Any> {
        let Self::Map(Order::Post, links) = self else { return Ok(descended) };
        let current = if is_unchanged(&descended) { value } else { &descended };
        let Some(result) = links.call(current, region) else { return Ok(descended) };
        let result = result.and_then(checked).map_err(|error| annotated(error, &current.as_view()))?;
        Ok(if is_unchanged(&result) { descended } else { result })
    }
}
