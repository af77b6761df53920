//! The global functions that walk through values and map them.

use super::active::{Active, Kind};
use super::callbacks::Callbacks;
use super::mutator::{Engine, Mutating, Mutator};
use super::outcome::{or_unchanged, result_of};
use super::policy::{Links, Order, Policy};
use super::rewrite;
use super::visitor::{Visiting, Visitor, active};
use super::{context, find};
use crate::any::{Any, AnyView};
use crate::error::Result;
use crate::function::Function;
use crate::registry::Globals;

/// The global functions of visitors, mutators and errors' contexts.
pub(in super::super) fn globals(globals: &mut Globals) {
    walks(globals);
    visitors(globals);
    mutators(globals);
    globals.fixed("ffi.VisitErrorContext.FindAccessPaths", |[root, context, with_prefixes]| {
        let pattern = context::pattern(context)?;
        find::paths(root.cast()?, &pattern, with_prefixes.cast()?).map(Any::from)
    });
}

/// The global functions that make a visitor or a mutator, and use it.
fn walks(globals: &mut Globals) {
    globals.fixed("ffi.StructuralWalk", |[root, plain, with_region, order]| {
        let (order, links) = links(plain, with_region, order)?;
        result_of(Visitor::new(Policy::Walk(order, links))?.visit(root.to_owned()?))
    });
    globals.fixed("ffi.StructuralVisit", |[root, callbacks]| {
        let policy = Policy::Visit(Callbacks::read::<2>(callbacks)?);
        result_of(Visitor::new(policy)?.visit(root.to_owned()?))
    });
    globals.fixed("ffi.StructuralMap", |[root, plain, with_region, order]| {
        let (order, links) = links(plain, with_region, order)?;
        Mutator::new(Engine::new(rewrite::Policy::Map(order, links)))?.mutate_root(root.to_owned()?)
    });
    globals.fixed("ffi.StructuralMutate", |[root, callbacks]| {
        let policy = rewrite::Policy::Mutate(Callbacks::read::<3>(callbacks)?);
        Mutator::new(Engine::new(policy))?.mutate_root(root.to_owned()?)
    });
}

fn links(plain: &AnyView<'_>, with_region: &AnyView<'_>, order: &AnyView<'_>) -> Result<(Order, Links)> {
    let order = Order::from_number(order.cast()?);
    Ok((order, Links { plain: Callbacks::read::<2>(plain)?, with_region: Callbacks::read::<2>(with_region)? }))
}

fn visitors(globals: &mut Globals) {
    globals.fixed("ffi.StructuralVisitorVisit", |[visitor, value]| {
        result_of(active::<Visiting>(visitor)?.visit(value.to_owned()?))
    });
    globals.fixed("ffi.StructuralVisitorDefaultVisit", |[visitor, value]| {
        result_of(active::<Visiting>(visitor)?.default_visit(value.to_owned()?))
    });
    globals.fixed("ffi.StructuralVisitorDefRegionKind", |[visitor]| Ok(active::<Visiting>(visitor)?.region().into()));
    globals.fixed("ffi.StructuralVisitorWithDefRegionKind", |[visitor, kind, callback]| {
        within(&active::<Visiting>(visitor)?, kind, callback)
    });
}

fn mutators(globals: &mut Globals) {
    globals.fixed("ffi.StructuralMutatorMutate", |[mutator, value]| {
        let value = value.to_owned()?;
        let result = active::<Mutating>(mutator)?.mutate(&value.as_view())?;
        Ok(or_unchanged(result, value))
    });
    globals.fixed("ffi.StructuralMutatorDefaultMutate", |[mutator, value]| {
        let value = value.to_owned()?;
        let result = active::<Mutating>(mutator)?.default_mutate(&value.as_view())?;
        Ok(or_unchanged(result, value))
    });
    globals.fixed("ffi.StructuralMutatorVarRemapGet", |[mutator, var]| active::<Mutating>(mutator)?.replacement(var));
    globals.fixed("ffi.StructuralMutatorVarRemapSet", |[mutator, var, value]| {
        active::<Mutating>(mutator)?.store(var, value).map(Any::from)
    });
    globals.fixed("ffi.StructuralMutatorDefRegionKind", |[mutator]| Ok(active::<Mutating>(mutator)?.region().into()));
    globals.fixed("ffi.StructuralMutatorWithDefRegionKind", |[mutator, kind, callback]| {
        within(&active::<Mutating>(mutator)?, kind, callback)
    });
}

/// Calls a function in a definition region.
fn within<K: Kind>(active: &Active<K>, kind: &AnyView<'_>, callback: &AnyView<'_>) -> Result<Any> {
    let callback: Function = callback.cast()?;
    let kind = super::callbacks::integer(&kind.to_owned()?)?;
    active.within(kind, || callback.call(()))
}
