//! The values and the memory that the code after a point reads. No others make a difference to it.

use std::collections::{BTreeSet, HashMap};

use tvm_ffi_codegen::ir::{Block, Function, Module, Op, StackSlot, Terminator, Value, ValueDef};

use super::super::accesses::graph::{Graph, targets};

/// The reads of a block and of those that follow it.
#[derive(Default)]
pub struct Reads {
    pub values: BTreeSet<Value>,
    /// The slots with offsets, or with [`ALL`].
    memory: BTreeSet<(StackSlot, i64)>,
    /// A loop leads back to the block, so its parameters have other numbers in each turn.
    pub is_head: bool,
}

/// Stands for all offsets of a slot.
const ALL: i64 = i64::MIN;

impl Reads {
    /// True if the code reads the slot at this offset.
    pub fn has(&self, slot: StackSlot, at: i64) -> bool {
        self.memory.contains(&(slot, at)) || self.memory.contains(&(slot, ALL))
    }
}

/// The reads from each block on.
pub fn of(module: &Module, function: &Function) -> HashMap<Block, Reads> {
    let mut reads: HashMap<Block, Reads> = function.blocks.keys().map(|block| (block, Reads::default())).collect();
    let order = Graph::of(function).order;
    for (at, &block) in order.iter().enumerate() {
        for to in targets(function, block).into_iter().filter(|to| order[..=at].contains(to)) {
            reads.entry(to).or_default().is_head = true;
        }
    }
    loop {
        let mut changed = false;
        for &block in order.iter().rev() {
            let now = from(module, function, block, &reads);
            let before = &reads[&block];
            if now.values != before.values || now.memory != before.memory {
                reads.insert(block, now);
                changed = true;
            }
        }
        if !changed {
            return reads;
        }
    }
}

fn from(module: &Module, function: &Function, block: Block, known: &HashMap<Block, Reads>) -> Reads {
    let data = &function.blocks[block];
    let mut reads = Reads { is_head: known[&block].is_head, ..Reads::default() };
    let terminator = data.terminator.as_ref().unwrap();
    for to in terminator.targets() {
        let next = &known[&to.block];
        let params = &function.blocks[to.block].params;
        reads.values.extend(next.values.iter().filter(|value| !params.contains(value)));
        reads.values.extend(&to.args);
        reads.memory.extend(&next.memory);
    }
    match terminator {
        Terminator::Branch { cond: value, .. } | Terminator::Return(Some(value)) => {
            reads.values.insert(*value);
        }
        Terminator::Return(None) | Terminator::Jump(_) => {}
    }
    for &inst in data.insts.iter().rev() {
        let inst = &function.insts[inst];
        if let Some(result) = inst.result {
            reads.values.remove(&result);
        }
        inst.op.for_each_operand(|value| reads.values.extend([value]));
        memory(module, function, &inst.op, &mut reads.memory);
    }
    reads
}

/// Changes the memory that is read after an operation to that read before it.
fn memory(module: &Module, function: &Function, op: &Op, memory: &mut BTreeSet<(StackSlot, i64)>) {
    let address = |value: Value| address(function, value);
    match op {
        Op::Store { ptr, offset, .. } => {
            if let Some((slot, Some(at))) = address(*ptr) {
                memory.remove(&(slot, at + i64::from(*offset)));
            }
        }
        Op::Load { ptr, offset, .. } => {
            if let Some((slot, at)) = address(*ptr) {
                memory.insert((slot, at.map_or(ALL, |at| at + i64::from(*offset))));
            }
        }
        Op::Call(callee, args) => {
            let decl = &module.functions[*callee];
            for (number, &arg) in args.iter().enumerate() {
                let Some((slot, at)) = address(arg) else { continue };
                let values = |count: usize| 2 * number_of(function, args[count]).unwrap_or(1);
                // from which word on, and how many
                let (from, words) = match (decl.name.as_str(), number) {
                    ("TVMFFIFunctionCall", 1) => (0, values(2)),
                    ("__tvm_ffi_codegen_release", 0) => (-1, 2),
                    (name, 2) if name.starts_with("__tvm_ffi_codegen_bind") => (0, values(3)),
                    (name, 2) if name.starts_with("__tvm_ffi_codegen_take_result") => (0, 2),
                    // scratch memory, and the place of a result
                    (name, _) if name.starts_with("__tvm_ffi_codegen_bind") => continue,
                    _ if decl.body.is_some() || (args.len(), number) == (4, 1) => {
                        memory.insert((slot, ALL));
                        continue;
                    }
                    // no import but these changes what is known of its argument
                    _ => continue,
                };
                match at {
                    Some(at) => memory.extend((from..from + words).map(|word| (slot, at + 8 * word))),
                    None => memory.extend([(slot, ALL)]),
                }
            }
        }
        Op::CallIndirect(_, _, args) => memory.extend(args.iter().filter_map(|&arg| Some((address(arg)?.0, ALL)))),
        _ => {}
    }
}

/// The slot to which a value points, and the offset if it is known.
fn address(function: &Function, value: Value) -> Option<(StackSlot, Option<i64>)> {
    let ValueDef::Result(inst) = function.values[value].def else { return None };
    match function.insts[inst].op {
        Op::StackAddr(slot, at) => Some((slot, Some(i64::from(at)))),
        Op::PtrAdd(base, by) => {
            let (slot, at) = address(function, base)?;
            Some((slot, at.zip(number_of(function, by)).map(|(at, by)| at + by)))
        }
        Op::Element { base, .. } => Some((address(function, base)?.0, None)),
        _ => None,
    }
}

fn number_of(function: &Function, value: Value) -> Option<i64> {
    let ValueDef::Result(inst) = function.values[value].def else { return None };
    match function.insts[inst].op {
        Op::IntConst { value, .. } => Some(value),
        _ => None,
    }
}
