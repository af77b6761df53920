//! The good path's conditions. All lead to one place where they fail: what exactly is wrong, if anything, is found out
//! [there](super::support::bind).
//!
//! Integers are compared by their difference, so that any number of comparisons costs one branch; a `Bool` costs a branch
//! of its own, which is less than making a number of it.

use crate::ir::{BinaryOp, Block, ConvertOp, FunctionBuilder, Hint, IntCC, Type, Value};

/// Conditions that are still to be branched on.
#[derive(Default)]
pub(super) struct Conditions {
    holds: Vec<Value>,
    /// A single comparison needs no difference.
    equal: Vec<(Value, Value)>,
    zero: Vec<Value>,
    non_negative: Vec<Value>,
}

impl Conditions {
    /// A `Bool` that has to hold.
    pub(super) fn holds(&mut self, value: Value) {
        self.holds.push(value);
    }

    /// Two `I32` or two `I64` that have to be equal.
    pub(super) fn equal(&mut self, a: Value, b: Value) {
        self.equal.push((a, b));
    }

    /// An `I64` that has to be 0.
    pub(super) fn zero(&mut self, value: Value) {
        self.zero.push(value);
    }

    /// An `I64` that must not be negative.
    pub(super) fn non_negative(&mut self, value: Value) {
        self.non_negative.push(value);
    }

    /// Branches: goes on where all conditions hold, to `doubt` elsewhere.
    pub(super) fn branch(&mut self, b: &mut FunctionBuilder<'_>, doubt: Block) {
        let Conditions { mut holds, equal, zero, non_negative } = std::mem::take(self);
        match (&equal[..], &zero[..], &non_negative[..]) {
            ([], [], []) => {}
            ([(x, y)], [], []) => holds.push(b.icmp(IntCC::Eq, *x, *y)),
            ([], [], [value]) => holds.push(b.icmp_imm(IntCC::SGe, *value, 0)),
            _ => {
                let difference = difference(b, &equal, zero, &non_negative);
                holds.extend(difference.map(|d| b.icmp_imm(IntCC::Eq, d, 0)));
            }
        }
        for condition in holds {
            let next = b.block();
            b.branch(condition, next, doubt, Hint::Likely);
            b.switch_to(next);
        }
    }
}

/// An integer that is 0 where all conditions hold.
fn difference(
    b: &mut FunctionBuilder<'_>,
    equal: &[(Value, Value)],
    zero: Vec<Value>,
    non_negative: &[Value],
) -> Option<Value> {
    let mut wide = zero;
    let mut narrow = Vec::new();
    for (x, y) in equal {
        let to = if b.type_of(*x) == Type::I32 { &mut narrow } else { &mut wide };
        to.push(b.binary(BinaryOp::Xor, *x, *y));
    }
    if let Some(signs) = any(b, non_negative) {
        let shift = b.i64(63);
        wide.push(b.binary(BinaryOp::LShr, signs, shift));
    }
    let narrow = any(b, &narrow);
    if wide.is_empty() {
        return narrow;
    }
    wide.extend(narrow.map(|n| b.convert(ConvertOp::ZExt, Type::I64, n)));
    any(b, &wide)
}

/// All bits of all values.
fn any(b: &mut FunctionBuilder<'_>, values: &[Value]) -> Option<Value> {
    values.iter().copied().reduce(|x, y| b.binary(BinaryOp::Or, x, y))
}
