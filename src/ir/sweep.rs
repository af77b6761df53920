//! Removes what has no use: blocks that nothing reaches, instructions and parameters whose value nothing needs, slots without an
//! address.

use super::inst::{BinaryOp, Block, Op, StackSlot, Value};
use super::module::{BlockData, Function, InstData, ValueData, ValueDef};

impl Function {
    /// Promotes variables in the frame to values, and removes what has no use.
    pub(crate) fn simplify(&mut self) {
        self.promote_slots();
        self.sweep();
    }

    /// Removes what has no use. All that stays gets new names, in order of the blocks.
    fn sweep(&mut self) {
        let needed = Needed::of(self);
        *self = rebuild(std::mem::take(self), &needed);
    }
}

/// Whether an instruction does more than to give a value. A load doesn't: what isn't there to be read is the lowering's bug.
fn has_effect(op: &Op) -> bool {
    match op {
        Op::Store { .. } | Op::Call(..) | Op::CallIndirect(..) => true,
        // these may trap
        Op::Binary(op, ..) => matches!(op, BinaryOp::SDiv | BinaryOp::UDiv | BinaryOp::SRem | BinaryOp::URem),
        _ => false,
    }
}

/// What is needed.
struct Needed {
    blocks: Vec<bool>,
    values: Vec<bool>,
}

impl Needed {
    fn of(func: &Function) -> Self {
        let mut blocks = vec![false; func.blocks.len()];
        let mut order: Vec<Block> = Vec::with_capacity(func.blocks.len());
        // for each block the arguments of branches to it
        let mut args: Vec<Vec<&[Value]>> = vec![Vec::new(); func.blocks.len()];
        let mut reach = |block: Block, order: &mut Vec<Block>| {
            if !std::mem::replace(&mut blocks[block.as_u32() as usize], true) {
                order.push(block);
            }
        };
        if let Some(entry) = func.entry() {
            reach(entry, &mut order);
        }
        let mut values = vec![false; func.values.len()];
        let mut work: Vec<Value> = Vec::new();
        let mut next = 0;
        while let Some(&block) = order.get(next) {
            next += 1;
            let data = &func.blocks[block];
            for inst in data.insts.iter().map(|&inst| &func.insts[inst]).filter(|inst| has_effect(&inst.op)) {
                inst.op.for_each_operand(|operand| work.push(operand));
            }
            let Some(terminator) = &data.terminator else { continue };
            work.extend(terminator.operand());
            for to in terminator.targets() {
                if !to.args.is_empty() {
                    args[to.block.as_u32() as usize].push(&to.args);
                }
                reach(to.block, &mut order);
            }
        }
        while let Some(value) = work.pop() {
            if std::mem::replace(&mut values[value.as_u32() as usize], true) {
                continue;
            }
            match func.values[value].def {
                ValueDef::Result(inst) => func.insts[inst].op.for_each_operand(|operand| work.push(operand)),
                ValueDef::Param(block, place) => {
                    work.extend(args[block.as_u32() as usize].iter().map(|args| args[place as usize]));
                }
            }
        }
        Needed { blocks, values }
    }

    fn inst(&self, inst: &InstData) -> bool {
        has_effect(&inst.op) || inst.result.is_some_and(|result| self.value(result))
    }

    fn value(&self, value: Value) -> bool {
        self.values[value.as_u32() as usize]
    }

    fn block(&self, block: Block) -> bool {
        self.blocks[block.as_u32() as usize]
    }
}

/// New names of what stays.
struct Names {
    blocks: Vec<Option<Block>>,
    values: Vec<Option<Value>>,
    slots: Vec<Option<StackSlot>>,
}

/// Writes what is needed of a function anew.
fn rebuild(mut old: Function, needed: &Needed) -> Function {
    let mut new = Function { signatures: std::mem::take(&mut old.signatures), ..Function::default() };
    let mut names = Names {
        blocks: vec![None; old.blocks.len()],
        values: vec![None; old.values.len()],
        slots: vec![None; old.slots.len()],
    };
    let entry = old.entry();
    for (block, data) in old.blocks.iter().filter(|(block, _)| needed.block(*block)) {
        let name = new.blocks.push(BlockData { cold: data.cold, ..BlockData::default() });
        names.blocks[block.as_u32() as usize] = Some(name);
        for &param in data.params.iter().filter(|&&param| needed.value(param) || Some(block) == entry) {
            let def = ValueDef::Param(name, new.blocks[name].params.len() as u32);
            let value = new.values.push(ValueData { ty: old.values[param].ty, def });
            names.values[param.as_u32() as usize] = Some(value);
            new.blocks[name].params.push(value);
        }
        for &inst in &data.insts {
            let data = &mut old.insts[inst];
            if !needed.inst(data) {
                continue;
            }
            let op = std::mem::replace(&mut data.op, Op::BoolConst(false));
            if let Op::StackAddr(slot) = op {
                names.slots[slot.as_u32() as usize].get_or_insert_with(|| new.slots.push(old.slots[slot]));
            }
            let inst = new.insts.push(InstData { op, result: None });
            if let Some(result) = data.result {
                let value = new.values.push(ValueData { ty: old.values[result].ty, def: ValueDef::Result(inst) });
                names.values[result.as_u32() as usize] = Some(value);
                new.insts[inst].result = Some(value);
            }
            new.blocks[name].insts.push(inst);
        }
    }

    // what is named here is needed, so that it has a name
    let rename = |value: &mut Value| *value = names.values[value.as_u32() as usize].unwrap_or(*value);
    for inst in new.insts.values_mut() {
        inst.op.for_each_operand_mut(rename);
        if let Op::StackAddr(slot) = &mut inst.op {
            *slot = names.slots[slot.as_u32() as usize].unwrap_or(*slot);
        }
    }
    for (block, data) in &old.blocks {
        let Some(name) = names.blocks[block.as_u32() as usize] else { continue };
        let mut terminator = data.terminator.clone();
        if let Some(terminator) = &mut terminator {
            for to in terminator.targets_mut() {
                let mut params = old.blocks[to.block].params.iter();
                to.args.retain(|_| params.next().is_some_and(|&param| needed.value(param)));
                to.block = names.blocks[to.block.as_u32() as usize].unwrap_or(to.block);
            }
            terminator.for_each_operand_mut(rename);
        }
        new.blocks[name].terminator = terminator;
    }
    new
}
