//! Finds the code that depends on an argument: the IR lines that load it or compute with it.

use std::collections::BTreeSet;

use crate::ir::{Function, Inst, LocationRef, Module, Op, SecondaryMap, Terminator, Value, ValueDef};
use tvm_ffi_runtime::abi::TVMFFIAny;

/// The index of the argument array among a wrapper's parameters.
const ARGS: usize = 1;

/// The IR lines for each of a wrapper's `count` arguments, in a module whose locations are the lines of its listing.
///
/// A line depends on an argument if it loads from the argument's slot, or has an operand that depends on it. If the
/// checks of several arguments are combined, the line depends on all of them. Values are followed through registers
/// and block parameters, but not through memory, and only inside the wrapper. Arguments that the binder has made are
/// not followed.
pub(super) fn lines_of_arguments(module: &Module, wrapper: &str, count: usize) -> Vec<BTreeSet<u32>> {
    let mut lines = vec![BTreeSet::new(); count];
    let Some(body) = module.function_named(wrapper).and_then(|(_, decl)| decl.body.as_ref()) else { return lines };
    let Some(flow) = Flow::of(body, count) else { return lines };
    let mut note = |location: Option<LocationRef>, arguments: &BTreeSet<usize>| {
        let Some(location) = location else { return };
        arguments.iter().for_each(|&argument| {
            lines[argument].insert(module.locations[location].line);
        });
    };
    for (block, data) in &body.blocks {
        for &inst in &data.insts {
            note(body.locations[inst].expand(), &flow.arguments_of(body, inst));
        }
        if let Some(value) = data.terminator.as_ref().and_then(Terminator::operand) {
            note(body.end_locations[block].expand(), &flow.arguments[value]);
        }
    }
    lines
}

/// Facts about a function's values.
struct Flow {
    /// The byte offset from the first argument, if the value is an address in the argument array.
    places: SecondaryMap<Value, Option<i64>>,
    /// The arguments that a value depends on.
    arguments: SecondaryMap<Value, BTreeSet<usize>>,
    /// The number of arguments.
    count: usize,
}

impl Flow {
    fn of(body: &Function, count: usize) -> Option<Self> {
        let entry = &body.blocks[body.entry()?];
        let mut flow = Flow { places: SecondaryMap::new(), arguments: SecondaryMap::new(), count };
        flow.places[*entry.params.get(ARGS)?] = Some(0);
        // loops take several rounds
        while flow.round(body) {}
        Some(flow)
    }

    /// Analyses the function once. Returns whether it learned anything new.
    fn round(&mut self, body: &Function) -> bool {
        let mut changed = false;
        for data in body.blocks.values() {
            for &inst in &data.insts {
                let Some(result) = body.insts[inst].result else { continue };
                let arguments = self.arguments_of(body, inst);
                changed |= self.add(result, &arguments);
                if let Op::PtrAdd(base, bytes) = body.insts[inst].op {
                    let place = self.places[base].zip(int_const(body, bytes)).map(|(base, bytes)| base + bytes);
                    changed |= place != self.places[result];
                    self.places[result] = place;
                }
            }
            for to in data.terminator.iter().flat_map(Terminator::targets) {
                for (&param, &passed) in body.blocks[to.block].params.iter().zip(&to.args) {
                    let arguments = self.arguments[passed].clone();
                    changed |= self.add(param, &arguments);
                }
            }
        }
        changed
    }

    fn add(&mut self, value: Value, arguments: &BTreeSet<usize>) -> bool {
        let known = &mut self.arguments[value];
        let before = known.len();
        known.extend(arguments);
        known.len() > before
    }

    /// The arguments that an instruction depends on.
    fn arguments_of(&self, body: &Function, inst: Inst) -> BTreeSet<usize> {
        let op = &body.insts[inst].op;
        let mut arguments = BTreeSet::new();
        op.for_each_operand(|operand| arguments.extend(&self.arguments[operand]));
        if let Op::Load { ptr, offset, .. } = op
            && let Some(base) = self.places[*ptr]
            && let Ok(place) = usize::try_from(base + i64::from(*offset))
        {
            arguments.extend(Some(place / size_of::<TVMFFIAny>()).filter(|argument| *argument < self.count));
        }
        arguments
    }
}

fn int_const(body: &Function, value: Value) -> Option<i64> {
    let ValueDef::Result(inst) = body.values[value].def else { return None };
    match body.insts[inst].op {
        Op::IntConst { value, .. } => Some(value),
        _ => None,
    }
}
