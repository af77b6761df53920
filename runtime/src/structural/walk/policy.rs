//! Walk policies: which callbacks run at each value, and when.
//! Rules: upstream's `StructuralWalkEngine`, `StructuralVisitEngine`.

use super::callbacks::Callbacks;
use super::outcome::{Outcome, Stop, checked, unexpected, visit_result};
use crate::abi::TypeIndex;
use crate::any::Any;
use crate::error::Result;
use crate::heap::ObjectRef;

/// When callbacks are called: before or after the values inside.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Order {
    Pre,
    Post,
}

impl Order {
    /// The order with upstream's number; any other number is that after the values inside.
    pub(super) fn from_number(number: i32) -> Self {
        if number == 0 { Self::Pre } else { Self::Post }
    }
}

/// The callbacks of a walk or map: those that take a value, and those that also take the definition region.
pub(super) struct Links {
    pub(super) plain: Callbacks,
    pub(super) with_region: Callbacks,
}

impl Links {
    /// Calls the first callback for a value's type, if there is one.
    pub(super) fn call(&self, value: &Any, region: i32) -> Option<Result<Any>> {
        let index = value.type_index();
        if let Some(callback) = self.plain.find(index) {
            return Some(callback.function.call_packed(&[value.as_view()]));
        }
        let callback = self.with_region.find(index)?;
        Some(callback.function.call_packed(&[value.as_view(), Any::from(region).as_view()]))
    }
}

/// A visitor's behaviour at each value.
pub(super) enum Policy {
    /// `ffi.StructuralWalk`.
    Walk(Order, Links),
    /// `ffi.StructuralVisit`: a callback replaces the descent into its value.
    Visit(Callbacks),
}

/// Whether to descend into a value.
#[derive(PartialEq, Eq)]
pub(super) enum Next {
    Descend,
    Skip,
}

impl Policy {
    /// Runs the callbacks that come before the values inside.
    pub(super) fn before(&self, visitor: &ObjectRef, region: i32, value: &Any) -> Outcome<Next> {
        match self {
            Self::Walk(Order::Pre, links) => walk_callback(links, region, value),
            Self::Walk(Order::Post, _) => Ok(Next::Descend),
            Self::Visit(callbacks) => {
                let Some(callback) = callbacks.find(value.type_index()) else { return Ok(Next::Descend) };
                let result = callback.function.call((value, visitor));
                visit_result(result).map_err(|stop| stop.at(value)).map(|()| Next::Skip)
            }
        }
    }

    /// Runs the callbacks that come after the values inside.
    pub(super) fn after(&self, region: i32, value: &Any) -> Outcome {
        match self {
            Self::Walk(Order::Post, links) => walk_callback(links, region, value).map(drop),
            _ => Ok(()),
        }
    }
}

fn walk_callback(links: &Links, region: i32, value: &Any) -> Outcome<Next> {
    match links.call(value, region) {
        None => Ok(Next::Descend),
        Some(result) => walk_result(result).map_err(|stop| stop.at(value)),
    }
}

/// Upstream's `WalkResult`: 1 skips the values inside.
fn walk_result(result: Result<Any>) -> Outcome<Next> {
    const SKIP: i32 = 1;
    let value = checked(result?)?;
    match value.type_index() {
        TypeIndex::NONE => Ok(Next::Descend),
        TypeIndex::VISIT_INTERRUPT => Err(Stop::Interrupt(value)),
        TypeIndex::INT | TypeIndex::BOOL => {
            Ok(if super::callbacks::integer(&value)? == SKIP { Next::Skip } else { Next::Descend })
        }
        _ => Err(Stop::Failed(unexpected("WalkResult", &value))),
    }
}
