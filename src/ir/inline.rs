//! Inlines straight-line code in place of a call.

use std::collections::HashMap;

use super::builder::FunctionBuilder;
use super::inst::{ConvertOp, IntCC, Op, Terminator, Value};
use super::module::Function;
use super::types::Type;

impl Function {
    /// Whether the function is straight-line code: its entry returns, so no other block is reachable.
    pub fn is_straight(&self) -> bool {
        let entry = self.blocks.values().next().and_then(|block| block.terminator.as_ref());
        matches!(entry, Some(Terminator::Return(_)))
    }

    /// Whether the function writes anything, or makes a call that may write.
    pub fn has_effects(&self) -> bool {
        self.insts.values().any(|inst| {
            matches!(
                inst.op,
                Op::Store { .. } | Op::AtomicAdd(..) | Op::CompareExchange(..) | Op::Call(..) | Op::CallIndirect(..)
            )
        })
    }
}

impl FunctionBuilder<'_> {
    /// Appends the [straight-line](Function::is_straight) code of a function of this module, with `args` for its
    /// parameters. Returns its result.
    pub fn inline(&mut self, callee: &Function, args: &[Value]) -> Option<Value> {
        let block = callee.blocks.values().next()?;
        let slots: Vec<_> = callee.slots.values().map(|slot| self.slot(slot.size, slot.align)).collect();
        let mut values: HashMap<Value, Value> = block.params.iter().copied().zip(args.iter().copied()).collect();
        let here = self.location();
        for inst in &block.insts {
            self.set_location(callee.locations[*inst].expand());
            let inst = &callee.insts[*inst];
            let mut op = inst.op.clone();
            op.for_each_operand_mut(|operand| *operand = values.get(operand).copied().unwrap_or(*operand));
            match &mut op {
                Op::StackAddr(slot, _) => *slot = slots[slot.as_u32() as usize],
                Op::CallIndirect(signature, ..) => *signature = self.signature(callee.signatures[*signature].clone()),
                _ => {}
            }
            let result = match self.known_truth(&op) {
                Some(known) => Some(known),
                None => self.push(op, inst.result.map(|result| callee.type_of(result))),
            };
            values.extend(inst.result.zip(result));
        }
        self.set_location(here);
        match &block.terminator {
            Some(Terminator::Return(Some(value))) => values.get(value).copied(),
            _ => None,
        }
    }

    /// The `Bool` that was converted to a number, if the operation compares that number with 0, as where a caller
    /// passes a `Bool` as a number.
    fn known_truth(&self, op: &Op) -> Option<Value> {
        let Op::ICmp(IntCC::Ne, number, zero) = op else { return None };
        match self.op_of(*number)? {
            Op::Convert(ConvertOp::ZExt, _, truth) if self.type_of(*truth) == Type::Bool => {
                (self.as_int_const(*zero) == Some(0)).then_some(*truth)
            }
            _ => None,
        }
    }
}
