//! `int32_t report(const void* pool, uint32_t template, const uint64_t* context)`: raises the error of a
//! [template](crate::lower::protocol::template) and returns -1. It creates the C strings that the template's pieces
//! print, and raises them with `TVMFFIErrorSetRaisedFromCStrParts`, which copies them.
//!
//! A directive may expand to an inner template. The context of an inner template is a path, or the directive's operands
//! on the stack. `report` [enters](Printer::enter) the inner template and returns at its end.

mod names;
mod paths;
mod printer;
mod values;

use std::cell::{Cell, RefCell};

use crate::ir::{DataRef, Linkage, Module, Type};
use crate::lower::capi;
use crate::lower::constants::ConstantPool;
use crate::lower::protocol::helpers::{self, REPORT_SYMBOL};
use crate::lower::protocol::{CALLING_STRINGS, Capability, Directive, MAX_STRINGS, TypeKind};
use crate::spec::MAX_CONTAINER_DEPTH;
use printer::{CAPACITY, CELL, DEPTH, FRAME, MAX_OPERANDS, Printer};

/// Defines `report` if it is imported. `data` will hold the pool, which has all templates.
pub(super) fn define(module: &mut Module, linkage: Linkage, data: DataRef, pool: &mut ConstantPool) {
    let Some(report) = helpers::defined_here(module, REPORT_SYMBOL, linkage) else { return };
    let set_raised = capi::import(module, capi::ERROR_SET_RAISED_FROM_C_STR_PARTS);
    let capabilities = pool.capabilities();
    // only lists of symbols and path steps can be long
    let long = [Directive::Bindings, Directive::Unknown].into_iter().any(|directive| capabilities.has(directive))
        || capabilities.has(Capability::Elements);
    let capacity = if long { CAPACITY } else { MAX_STRINGS };
    // names are strings of the pool, so they take no cells
    let (numbers, is_partial) = (capacity, capabilities.has(Directive::Stated));
    let capacity = capacity + if is_partial { CALLING_STRINGS } else { 0 };
    // numbers of a template may still be printed after the room for strings runs out
    let cells_size = CELL * (numbers + if long { MAX_STRINGS } else { 0 });
    // strings from the caller: the name of a dtype, the keys of one path
    let texts_that_came = usize::from(capabilities.has(Directive::Quoted))
        + if capabilities.has(TypeKind::Map) { MAX_CONTAINER_DEPTH } else { 0 };
    let cells_size = cells_size + values::TEXT_ROOM as usize * texts_that_came;
    module.define(report, |c| {
        let [operands, frames, strings, cells] =
            [8 * MAX_OPERANDS, FRAME as usize * DEPTH, 8 * capacity, cells_size].map(|size| c.reserve(size));
        let pointer = || c.var(Type::Ptr);
        let printer = Printer {
            at: pointer(),
            context: pointer(),
            left: pointer(),
            next: pointer(),
            free: pointer(),
            index: c.var(Type::I64),
            step: c.var(Type::I64),
            stated: is_partial.then(|| c.var(Type::I64)),
            head: c.block(),
            end: c.block(),
            enter: Cell::new(None),
            named: Cell::new(None),
            strings,
            capacity: long.then_some(capacity),
            frames,
            operands,
            base: c.data(data, 0),
            c,
            pool: RefCell::new(pool),
            capabilities,
        };
        printer.free.set(c.stack_addr(cells) + cells_size as i64);
        printer.run();
        printer.raise(set_raised);
    });
}
