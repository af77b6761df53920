//! Walks through values and maps them: with callbacks, with visitor and mutator objects, and with the hooks of types.
//! `active` has the objects of visitors and mutators, which C++ code makes too. `visit` and `mutate` descend with a
//! stack of their own, so deep values take no recursion; only a hook or a callback that asks for inner values recurses.
//! Header sections: upstream's `extra/structural_visit.h`, `extra/structural_mutate.h`, `extra/visit_error_context.h`.

mod active;
mod callbacks;
mod children;
mod context;
mod find;
mod globals;
mod hooks;
mod mutate;
mod mutator;
mod outcome;
mod policy;
mod rebuild;
mod rewrite;
mod visit;
mod visitor;

pub(super) use globals::globals;

use crate::type_table::Definition;

/// The types of visitors and mutators, and the hooks of built-in types.
pub(super) fn types() -> Vec<Definition> {
    // Types without a static index get theirs in this order, which is upstream's.
    let mut types = vec![visitor::definition(), context::definition(), mutator::definition()];
    types.extend(hooks::definitions());
    types
}
