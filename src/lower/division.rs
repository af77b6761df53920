//! Division as dimensions have it: rounded down, a rest with the divisor's sign.

use crate::ir::{BinaryOp, FunctionBuilder, IntCC, Value};
use crate::spec::DimOp;

/// A quotient rounded down, or the rest with the divisor's sign; for divisors that don't trap.
pub(super) fn floor_division(b: &mut FunctionBuilder<'_>, op: DimOp, x: Value, y: Value) -> Value {
    let rest = b.binary(BinaryOp::SRem, x, y);
    let some = b.icmp_imm(IntCC::Ne, rest, 0);
    let signs = b.binary(BinaryOp::Xor, rest, y);
    let differ = b.icmp_imm(IntCC::SLt, signs, 0);
    let up = b.binary(BinaryOp::And, some, differ);
    if op == DimOp::Mod {
        let moved = b.binary(BinaryOp::Add, rest, y);
        return b.select(up, moved, rest);
    }
    let quotient = b.binary(BinaryOp::SDiv, x, y);
    let one = b.i64(1);
    let less = b.binary(BinaryOp::Sub, quotient, one);
    b.select(up, less, quotient)
}

/// As [`floor_division`], for any divisor: 0 and -1, on which a machine may trap, are taken for 1, and what the second gives is put in
/// its place. What 0 gives means nothing.
pub(super) fn total_division(b: &mut FunctionBuilder<'_>, op: DimOp, x: Value, y: Value) -> Value {
    let (zero, one) = (b.i64(0), b.i64(1));
    let (is_zero, is_minus_one) = (b.icmp_imm(IntCC::Eq, y, 0), b.icmp_imm(IntCC::Eq, y, -1));
    let special = b.binary(BinaryOp::Or, is_zero, is_minus_one);
    let divisor = b.select(special, one, y);
    let divided = floor_division(b, op, x, divisor);
    let negative = if op == DimOp::Mod { zero } else { b.binary(BinaryOp::Sub, zero, x) };
    b.select(is_minus_one, negative, divided)
}
