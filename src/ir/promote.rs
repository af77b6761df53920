//! Variables in the frame become values: the SSA construction of Cytron et al. ("Efficiently Computing Static Single Assignment Form and
//! the Control Dependence Graph"), with parameters only where the variable is still wanted.
//!
//! A slot is a variable if all that is done with its address is to load and store values of one type there. What is read of one that
//! nothing was written to is zero.

use super::dominators::DominatorTree;
use super::inst::{Inst, Op, StackSlot, Value};
use super::module::{Function, InstData, ValueData, ValueDef};
use super::types::Type;

impl Function {
    /// Promotes all variables in the frame. What is left of them, and blocks that nothing reaches, are for [`sweep`](Self::sweep)
    /// to remove: until then these don't keep the verifier's rules.
    pub(super) fn promote_slots(&mut self) {
        let variables = Variables::of(self);
        if variables.types.is_empty() {
            return;
        }
        let tree = DominatorTree::compute(self);
        let params = place_params(self, &variables, &tree);
        Renaming::new(self, variables, &tree, params).run();
    }
}

/// Slots that are variables, numbered.
struct Variables {
    types: Vec<Type>,
    /// For each value the variable whose address it is.
    at: Vec<Option<u32>>,
}

/// What is known of a slot so far.
#[derive(Clone, Copy, PartialEq)]
enum Slot {
    Unused,
    Variable(Type),
    Memory,
}

impl Variables {
    fn of(func: &Function) -> Self {
        let mut addresses: Vec<Option<StackSlot>> = vec![None; func.values.len()];
        for inst in func.insts.values() {
            if let (&Op::StackAddr(slot), Some(result)) = (&inst.op, inst.result) {
                addresses[index(result)] = Some(slot);
            }
        }
        let mut slots = vec![Slot::Unused; func.slots.len()];
        // the type is that of an access to the whole variable; anything else is none
        let mut seen = |value: Value, access: Option<Type>| {
            let Some(slot) = addresses[index(value)] else { return };
            let state = &mut slots[slot.as_u32() as usize];
            *state = match (*state, access) {
                (Slot::Unused, Some(ty)) if ty.bytes() <= func.slots[slot].size => Slot::Variable(ty),
                (Slot::Variable(known), Some(ty)) if known == ty => Slot::Variable(ty),
                _ => Slot::Memory,
            };
        };
        for inst in func.insts.values() {
            match inst.op {
                Op::Load { ty, ptr, offset: 0, .. } => seen(ptr, Some(ty)),
                Op::Store { value, ptr, offset: 0, .. } => {
                    seen(value, None);
                    seen(ptr, Some(func.type_of(value)));
                }
                ref op => op.for_each_operand(|operand| seen(operand, None)),
            }
        }
        for terminator in func.blocks.values().filter_map(|block| block.terminator.as_ref()) {
            terminator.operand().into_iter().for_each(|operand| seen(operand, None));
            terminator.targets().flat_map(|to| &to.args).for_each(|&arg| seen(arg, None));
        }
        let mut types = Vec::new();
        let number = |slot| match slot {
            Slot::Variable(ty) => {
                types.push(ty);
                Some(types.len() as u32 - 1)
            }
            Slot::Unused | Slot::Memory => None,
        };
        let numbers: Vec<Option<u32>> = slots.into_iter().map(number).collect();
        let at = addresses.into_iter().map(|slot| numbers[slot?.as_u32() as usize]).collect();
        Variables { types, at }
    }

    /// The variable whose address this is.
    fn at(&self, address: Value) -> Option<u32> {
        // what was made since is no address
        self.at.get(index(address)).copied().flatten()
    }
}

fn index(value: Value) -> usize {
    value.as_u32() as usize
}

/// Where each variable comes as a parameter, by the block's rank: the variable, and the parameter.
type Params = Vec<Vec<(u32, Value)>>;

/// Gives parameters to the blocks where different values of a variable meet, if it is read from there on.
fn place_params(func: &mut Function, variables: &Variables, tree: &DominatorTree) -> Params {
    let count = tree.order.len();
    // for each variable the blocks that write it, and those that read it before
    let mut writes: Vec<Vec<u32>> = vec![Vec::new(); variables.types.len()];
    let mut reads = writes.clone();
    for (&block, rank) in tree.order.iter().zip(0..) {
        for &inst in &func.blocks[block].insts {
            match func.insts[inst].op {
                Op::Load { ptr, .. } => {
                    if let Some(variable) = variables.at(ptr)
                        && writes[variable as usize].last() != Some(&rank)
                        && reads[variable as usize].last() != Some(&rank)
                    {
                        reads[variable as usize].push(rank);
                    }
                }
                Op::Store { ptr, .. } => {
                    if let Some(variable) = variables.at(ptr)
                        && writes[variable as usize].last() != Some(&rank)
                    {
                        writes[variable as usize].push(rank);
                    }
                }
                _ => {}
            }
        }
    }

    let frontiers = dominance_frontiers(tree);
    let mut params: Params = vec![Vec::new(); count];
    // of these the last variable that was written, read from the beginning of the block, or has become a parameter there
    let [mut written, mut live, mut has_param] = [const { Vec::new() }; 3];
    for stamps in [&mut written, &mut live, &mut has_param] {
        stamps.resize(count, u32::MAX);
    }
    for ((mut writes, mut reads), variable) in writes.into_iter().zip(reads).zip(0..) {
        let ty = variables.types[variable as usize];
        for &rank in &writes {
            written[rank as usize] = variable;
        }
        for &rank in &reads {
            live[rank as usize] = variable;
        }
        while let Some(rank) = reads.pop() {
            for &pred in tree.preds(rank) {
                if written[pred as usize] != variable && live[pred as usize] != variable {
                    live[pred as usize] = variable;
                    reads.push(pred);
                }
            }
        }
        // the entry block has the first value, zero
        writes.push(0);
        while let Some(rank) = writes.pop() {
            for &at in &frontiers[rank as usize] {
                if live[at as usize] == variable && has_param[at as usize] != variable {
                    has_param[at as usize] = variable;
                    let block = tree.order[at as usize];
                    let place = func.blocks[block].params.len() as u32;
                    let param = func.values.push(ValueData { ty, def: ValueDef::Param(block, place) });
                    func.blocks[block].params.push(param);
                    params[at as usize].push((variable, param));
                    writes.push(at);
                }
            }
        }
    }
    params
}

/// For each block those that it doesn't dominate, but a predecessor of which it does.
fn dominance_frontiers(tree: &DominatorTree) -> Vec<Vec<u32>> {
    let mut frontiers: Vec<Vec<u32>> = vec![Vec::new(); tree.order.len()];
    for block in 0..tree.order.len() as u32 {
        let preds = tree.preds(block);
        if preds.len() < 2 {
            continue;
        }
        for &pred in preds {
            let mut walk = pred;
            // further up an earlier walk for this block has been
            while walk != tree.idom[block as usize] && frontiers[walk as usize].last() != Some(&block) {
                frontiers[walk as usize].push(block);
                walk = tree.idom[walk as usize];
            }
        }
    }
    frontiers
}

/// Loads become the values that they give.
struct Renaming<'a> {
    func: &'a mut Function,
    variables: Variables,
    tree: &'a DominatorTree,
    params: Params,
    /// What a variable has now; `None` where nothing was written.
    current: Vec<Option<Value>>,
    /// What it had before, for each change on the way from the entry.
    changes: Vec<(u32, Option<Value>)>,
    /// What each value is now.
    now: Vec<Value>,
    /// Zeros of the entry block, by type.
    zeros: Vec<(Type, Value)>,
}

impl<'a> Renaming<'a> {
    fn new(func: &'a mut Function, variables: Variables, tree: &'a DominatorTree, params: Params) -> Self {
        let now = func.values.keys().collect();
        let current = vec![None; variables.types.len()];
        Renaming { func, variables, tree, params, current, changes: Vec::new(), now, zeros: Vec::new() }
    }

    /// Down the dominator tree, so that each value is known before it is used.
    fn run(mut self) {
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.tree.order.len()];
        for (block, &parent) in (0..).zip(&self.tree.idom).skip(1) {
            children[parent as usize].push(block);
        }
        enum Step {
            Enter(u32),
            /// Back to when there were so many changes.
            Leave(usize),
        }
        let mut work = vec![Step::Enter(0)];
        while let Some(step) = work.pop() {
            match step {
                Step::Enter(rank) => {
                    work.push(Step::Leave(self.changes.len()));
                    self.block(rank);
                    work.extend(children[rank as usize].iter().map(|&child| Step::Enter(child)));
                }
                Step::Leave(count) => {
                    for (variable, before) in self.changes.drain(count..).rev() {
                        self.current[variable as usize] = before;
                    }
                }
            }
        }
        let zeros = self.zeros.into_iter().filter_map(|(_, zero)| match self.func.values[zero].def {
            ValueDef::Result(inst) => Some(inst),
            ValueDef::Param(..) => None,
        });
        if let Some(entry) = self.tree.order.first() {
            self.func.blocks[*entry].insts.splice(..0, zeros);
        }
    }

    fn set(&mut self, variable: u32, value: Value) {
        let before = self.current[variable as usize].replace(value);
        self.changes.push((variable, before));
    }

    fn get(&mut self, variable: u32) -> Value {
        self.current[variable as usize].unwrap_or_else(|| {
            let ty = self.variables.types[variable as usize];
            if let Some((_, zero)) = self.zeros.iter().find(|(known, _)| *known == ty) {
                return *zero;
            }
            let inst = self.func.insts.push(InstData { op: zero(ty), result: None });
            let zero = self.func.values.push(ValueData { ty, def: ValueDef::Result(inst) });
            self.func.insts[inst].result = Some(zero);
            self.zeros.push((ty, zero));
            zero
        })
    }

    fn block(&mut self, rank: u32) {
        let block = self.tree.order[rank as usize];
        for i in 0..self.params[rank as usize].len() {
            let (variable, param) = self.params[rank as usize][i];
            self.set(variable, param);
        }
        let mut insts = std::mem::take(&mut self.func.blocks[block].insts);
        insts.retain(|&inst| !self.inst(inst));
        self.func.blocks[block].insts = insts;
        let Some(mut terminator) = self.func.blocks[block].terminator.take() else { return };
        terminator.for_each_operand_mut(|operand| *operand = now(&self.now, *operand));
        for to in terminator.targets_mut() {
            let Some(target) = self.tree.rank(to.block) else { continue };
            for i in 0..self.params[target as usize].len() {
                let (variable, _) = self.params[target as usize][i];
                let arg = self.get(variable);
                to.args.push(arg);
            }
        }
        self.func.blocks[block].terminator = Some(terminator);
    }

    /// Rewrites an instruction's operands; whether it is one of a variable, and no longer needed.
    fn inst(&mut self, inst: Inst) -> bool {
        let data = &mut self.func.insts[inst];
        data.op.for_each_operand_mut(|operand| *operand = now(&self.now, *operand));
        match (&data.op, data.result) {
            (&Op::Load { ptr, .. }, Some(result)) => {
                let Some(variable) = self.variables.at(ptr) else { return false };
                self.now[index(result)] = self.get(variable);
                true
            }
            (&Op::Store { value, ptr, .. }, _) => {
                let Some(variable) = self.variables.at(ptr) else { return false };
                self.set(variable, value);
                true
            }
            _ => false,
        }
    }
}

/// The zero of a type.
fn zero(ty: Type) -> Op {
    match ty {
        Type::F32 | Type::F64 => Op::FloatConst { ty, bits: 0 },
        Type::Ptr => Op::PtrConst(0),
        Type::Bool => Op::BoolConst(false),
        Type::I8 | Type::I16 | Type::I32 | Type::I64 => Op::IntConst { ty, value: 0 },
    }
}

/// What a value is now. What was made since the beginning is what it is.
fn now(now: &[Value], value: Value) -> Value {
    now.get(index(value)).copied().unwrap_or(value)
}
