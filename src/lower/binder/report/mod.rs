//! `int32_t report(const void* pool, uint32_t template, const uint64_t* context)`: reads a [template](crate::lower::protocol::template), makes the C
//! strings that its pieces print, raises them by `TVMFFIErrorSetRaisedFromCStrParts`, which copies them, and returns -1.
//!
//! A directive may stand for an inner template, whose context is a path or the directive's operands in the frame. `report` then
//! [enters](Printer::enter) the inner template, and comes back at its end.

mod names;
mod paths;
mod printer;
mod values;

use super::structured::{StructuredCode, Var};
use crate::ir::{DataRef, FunctionBuilder, Linkage, Module, Type};
use crate::lower::capi;
use crate::lower::constants::ConstantPool;
use crate::lower::protocol::helpers::{self, REPORT_SYMBOL};
use crate::lower::protocol::{CALLING_STRINGS, Capability, Directive, MAX_STRINGS, TypeKind};
use crate::spec::MAX_CONTAINER_DEPTH;
use printer::{CAPACITY, CELL, DEPTH, FRAME, MAX_OPERANDS, Printer};

/// Defines `report` where it is imported; `data` will hold the pool, which has all templates.
pub(super) fn define(module: &mut Module, linkage: Linkage, data: DataRef, pool: &mut ConstantPool) {
    let Some(report) = helpers::defined_here(module, REPORT_SYMBOL, linkage) else { return };
    let set_raised = capi::import(module, capi::ERROR_SET_RAISED_FROM_C_STR_PARTS);
    let capabilities = pool.capabilities();
    let mut b = FunctionBuilder::new(module, report);
    // only lists of symbols and steps into containers may be long
    let long = [Directive::Bindings, Directive::Unknown].into_iter().any(|directive| capabilities.has(directive))
        || capabilities.has(Capability::Elements);
    let capacity = if long { CAPACITY } else { MAX_STRINGS };
    // names are texts of the pool, which take no cells
    let (numbers, is_partial) = (capacity, capabilities.has(Directive::Stated));
    let capacity = capacity + if is_partial { CALLING_STRINGS } else { 0 };
    // numbers of a template may come when there is no room for strings any more
    let cells_size = CELL * (numbers + if long { MAX_STRINGS } else { 0 });
    // texts that came: the name of a dtype, the keys of one place
    let texts_that_came = usize::from(capabilities.has(Directive::Quoted))
        + if capabilities.has(TypeKind::Map) { MAX_CONTAINER_DEPTH } else { 0 };
    let cells_size = cells_size + values::TEXT_ROOM as usize * texts_that_came;
    let [operands, frames, strings, cells] =
        [8 * MAX_OPERANDS, FRAME as usize * DEPTH, 8 * capacity, cells_size].map(|size| b.slot(size as u32, 8));
    let mut printer = Printer {
        at: Var::new(&mut b, Type::Ptr),
        context: Var::new(&mut b, Type::Ptr),
        left: Var::new(&mut b, Type::Ptr),
        next: Var::new(&mut b, Type::Ptr),
        free: Var::new(&mut b, Type::Ptr),
        index: Var::new(&mut b, Type::I64),
        step: Var::new(&mut b, Type::I64),
        stated: is_partial.then(|| Var::new(&mut b, Type::I64)),
        head: b.block(),
        end: b.block(),
        enter: None,
        named: None,
        strings,
        capacity: long.then_some(capacity),
        frames,
        operands,
        base: b.data_addr(data, 0),
        b,
        pool,
        capabilities,
    };
    let cells = printer.b.stack_addr(cells);
    let free = printer.b.ptr_add_imm(cells, cells_size as i64);
    printer.set(printer.free, free);
    printer.run();
    printer.raise(set_raised);
    printer.b.finish();
}
