//! The hooks of built-in types, as attributes. C++ code calls them with its own visitors and mutators.
//! Rules: upstream's `VisitSeqContainer`, `MutateArray` and the others in structural_visit.cc and structural_mutate.cc.

use super::mutator::{MutateFn, mutate_container, mutate_container_in_place, mutate_leaf};
use super::visitor::{VisitFn, visit_container};
use crate::reflect::native::address;
use crate::type_table::Definition;

const VISIT: &str = "__s_visit__";
const MUTATE: &str = "__s_mutate__";
const MUTATE_IN_PLACE: &str = "__s_maybe_inplace_mutate__";

/// The hooks of containers, and of types without values inside.
pub(super) fn definitions() -> Vec<Definition> {
    let mutating = |key, mutate: MutateFn, in_place: MutateFn| {
        // SAFETY: both attributes are functions of this type.
        let (mutate, in_place) = unsafe { (address(mutate as *const ()), address(in_place as *const ())) };
        Definition::new(key, "ffi.Object").attribute(MUTATE, mutate).attribute(MUTATE_IN_PLACE, in_place)
    };
    let container = |key| {
        // SAFETY: the attribute is a function of this type.
        let visit = unsafe { address(visit_container as VisitFn as *const ()) };
        mutating(key, mutate_container, mutate_container_in_place).attribute(VISIT, visit)
    };
    let leaf = |key| mutating(key, mutate_leaf, mutate_leaf);
    let containers = ["ffi.Array", "ffi.List", "ffi.Map", "ffi.Dict"].map(container);
    containers.into_iter().chain(["ffi.BigInt", "ffi.String", "ffi.Bytes"].map(leaf)).collect()
}
