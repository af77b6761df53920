//! Arithmetic of dimensions (docs/signatures.md): 64 bits, signed, with overflow told; division is rounded down, and the rest has the
//! divisor's sign. The one way from a dimension to IR.

use crate::ir::{BinaryOp, FunctionBuilder, IntCC, Value};
use crate::spec::{Dim, DimOp};

/// How code tells that a result doesn't fit in 64 bits.
#[derive(Clone, Copy)]
pub(super) enum Overflow {
    /// It does not fit where this value is negative.
    Negative(Value),
    /// It does not fit where these values differ.
    Different(Value, Value),
}

/// A sum, difference or product in 64 bits, and whether it fits. Divisions are not among the operations; they count as products.
pub(super) fn checked(b: &mut FunctionBuilder<'_>, op: DimOp, x: Value, y: Value) -> (Value, Overflow) {
    match op {
        DimOp::Add => {
            let sum = b.binary(BinaryOp::Add, x, y);
            // overflows where both signs differ from the sum's
            let (first, second) = (b.binary(BinaryOp::Xor, x, sum), b.binary(BinaryOp::Xor, y, sum));
            (sum, Overflow::Negative(b.binary(BinaryOp::And, first, second)))
        }
        DimOp::Sub => {
            let difference = b.binary(BinaryOp::Sub, x, y);
            let (first, second) = (b.binary(BinaryOp::Xor, x, y), b.binary(BinaryOp::Xor, x, difference));
            (difference, Overflow::Negative(b.binary(BinaryOp::And, first, second)))
        }
        DimOp::Mul | DimOp::FloorDiv | DimOp::Mod => {
            let low = b.binary(BinaryOp::Mul, x, y);
            let high = b.binary(BinaryOp::SMulHi, x, y);
            let shift = b.i64(63);
            let sign = b.binary(BinaryOp::AShr, low, shift);
            (low, Overflow::Different(high, sign))
        }
    }
}

/// A quotient or rest by a positive number. Where the rest towards zero is negative, the quotient is one less.
pub(super) fn division_by_positive(b: &mut FunctionBuilder<'_>, op: DimOp, x: Value, divisor: Value) -> Value {
    let rest = b.binary(BinaryOp::SRem, x, divisor);
    let shift = b.i64(63);
    let negative = b.binary(BinaryOp::AShr, rest, shift);
    if op == DimOp::FloorDiv {
        let quotient = b.binary(BinaryOp::SDiv, x, divisor);
        return b.binary(BinaryOp::Add, quotient, negative);
    }
    let back = b.binary(BinaryOp::And, divisor, negative);
    b.binary(BinaryOp::Add, rest, back)
}

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

/// As [`floor_division`], for any divisor: 0 and -1, on which a machine may trap, are replaced by 1. The result for -1 is put in
/// afterwards; the result for 0 means nothing.
pub(super) fn total_division(b: &mut FunctionBuilder<'_>, op: DimOp, x: Value, y: Value) -> Value {
    let (zero, one) = (b.i64(0), b.i64(1));
    let (is_zero, is_minus_one) = (b.icmp_imm(IntCC::Eq, y, 0), b.icmp_imm(IntCC::Eq, y, -1));
    let special = b.binary(BinaryOp::Or, is_zero, is_minus_one);
    let divisor = b.select(special, one, y);
    let divided = floor_division(b, op, x, divisor);
    let negative = if op == DimOp::Mod { zero } else { b.binary(BinaryOp::Sub, zero, x) };
    b.select(is_minus_one, negative, divided)
}

/// Code for the parts of a dimension: where symbols have their values, and what becomes of overflows and divisors.
pub(super) trait DimCode {
    /// A constant, an `I64`.
    fn constant(&mut self, value: i64) -> Value;

    /// The value of a symbol, if it has one.
    fn symbol(&mut self, name: &str) -> Option<Value>;

    /// An operation on two values; `divisor` is the second one, where it is constant.
    fn operation(&mut self, op: DimOp, x: Value, y: Value, divisor: Option<i64>) -> Value;
}

/// The value of a dimension; `None` where one of its symbols has none.
pub(super) fn lower_dim(code: &mut impl DimCode, dim: &Dim) -> Option<Value> {
    match dim {
        Dim::Const(value) => Some(code.constant(*value)),
        Dim::Symbol(name) => code.symbol(name),
        Dim::Binary(op @ (DimOp::FloorDiv | DimOp::Mod), x, y) => {
            let x = lower_dim(code, x)?;
            let divisor = y.eval(&|_| None);
            let y = match divisor {
                Some(divisor) => code.constant(divisor),
                None => lower_dim(code, y)?,
            };
            Some(code.operation(*op, x, y, divisor))
        }
        Dim::Binary(op, x, y) => {
            let (x, y) = (lower_dim(code, x)?, lower_dim(code, y)?);
            Some(code.operation(*op, x, y, None))
        }
    }
}
