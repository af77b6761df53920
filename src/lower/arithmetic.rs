//! Arithmetic of dimensions (docs/reference/signatures.md): signed 64-bit, with overflow detection. Division rounds
//! down, and the remainder has the divisor's sign. All dimensions are lowered to IR here. Bodies divide integers of any
//! width with the same code.

use crate::ir::{BinaryOp, ConvertOp, FunctionBuilder, IntCC, Value};
use crate::spec::{Dim, DimOp};

/// How code detects that a result doesn't fit in 64 bits.
#[derive(Clone, Copy)]
pub(super) enum Overflow {
    /// It doesn't fit if this value is negative.
    Negative(Value),
    /// It doesn't fit if these values differ.
    Different(Value, Value),
}

/// A sum, difference or product, which wraps if it doesn't fit in 64 bits. Any other operation counts as a product;
/// don't pass one.
pub(super) fn wrapping(b: &mut FunctionBuilder<'_>, op: DimOp, x: Value, y: Value) -> Value {
    let op = match op {
        DimOp::Add => BinaryOp::Add,
        DimOp::Sub => BinaryOp::Sub,
        _ => BinaryOp::Mul,
    };
    b.binary(op, x, y)
}

/// A sum, difference or product in 64 bits, and whether it fits. Any other operation counts as a product; don't pass
/// one.
pub(super) fn checked(b: &mut FunctionBuilder<'_>, op: DimOp, x: Value, y: Value) -> (Value, Overflow) {
    let result = wrapping(b, op, x, y);
    let overflow = match op {
        DimOp::Add => {
            // overflows if both signs differ from the sum's
            let (first, second) = (b.binary(BinaryOp::Xor, x, result), b.binary(BinaryOp::Xor, y, result));
            Overflow::Negative(b.binary(BinaryOp::And, first, second))
        }
        DimOp::Sub => {
            let (first, second) = (b.binary(BinaryOp::Xor, x, y), b.binary(BinaryOp::Xor, x, result));
            Overflow::Negative(b.binary(BinaryOp::And, first, second))
        }
        _ => {
            let high = b.binary(BinaryOp::SMulHi, x, y);
            let shift = b.i64(63);
            let sign = b.binary(BinaryOp::AShr, result, shift);
            Overflow::Different(high, sign)
        }
    };
    (result, overflow)
}

/// The minimum or the maximum of two values.
pub(super) fn extremum(b: &mut FunctionBuilder<'_>, op: DimOp, x: Value, y: Value) -> Value {
    let less = b.icmp(IntCC::SLt, x, y);
    let (first, second) = if op == DimOp::Min { (x, y) } else { (y, x) };
    b.select(less, first, second)
}

/// A quotient or remainder by a power of two, without a division: a backend that doesn't select instructions by
/// constant operands would emit two divisions.
fn division_by_power(b: &mut FunctionBuilder<'_>, op: DimOp, x: Value, power: i64) -> Value {
    if op == DimOp::Mod {
        return b.binary_imm(BinaryOp::And, x, power - 1);
    }
    let quotient = b.binary_imm(BinaryOp::AShr, x, i64::from(power.trailing_zeros()));
    if op == DimOp::FloorDiv {
        return quotient;
    }
    let rest = b.binary_imm(BinaryOp::And, x, power - 1);
    one_more_unless_exact(b, quotient, rest)
}

/// The quotient, plus 1 unless the remainder is 0.
fn one_more_unless_exact(b: &mut FunctionBuilder<'_>, quotient: Value, rest: Value) -> Value {
    let ty = b.type_of(quotient);
    let some = b.icmp_imm(IntCC::Ne, rest, 0);
    let more = b.convert(ConvertOp::ZExt, ty, some);
    b.binary(BinaryOp::Add, quotient, more)
}

/// A quotient or remainder by a positive number. A negative remainder of the truncating division lowers the
/// rounded-down quotient by one; a positive one raises the rounded-up quotient by one.
pub(super) fn division_by_positive(b: &mut FunctionBuilder<'_>, op: DimOp, x: Value, divisor: Value) -> Value {
    if let Some(power) = b.as_int_const(divisor).filter(|divisor| divisor.cast_unsigned().is_power_of_two()) {
        return division_by_power(b, op, x, power);
    }
    let ty = b.type_of(x);
    let shift = b.iconst(ty, i64::from(ty.bits()) - 1);
    if op == DimOp::Mod {
        let rest = b.binary(BinaryOp::SRem, x, divisor);
        let negative = b.binary(BinaryOp::AShr, rest, shift);
        let back = b.binary(BinaryOp::And, divisor, negative);
        return b.binary(BinaryOp::Add, rest, back);
    }
    // a product is faster than a second division
    let quotient = b.binary(BinaryOp::SDiv, x, divisor);
    let product = b.binary(BinaryOp::Mul, quotient, divisor);
    if op == DimOp::CeilDiv {
        let opposite = b.binary(BinaryOp::Sub, product, x);
        let positive = b.binary(BinaryOp::AShr, opposite, shift);
        return b.binary(BinaryOp::Sub, quotient, positive);
    }
    let rest = b.binary(BinaryOp::Sub, x, product);
    let negative = b.binary(BinaryOp::AShr, rest, shift);
    b.binary(BinaryOp::Add, quotient, negative)
}

/// A quotient rounded down or up, or the remainder with the divisor's sign; only for divisors that don't trap.
pub(super) fn rounded_division(b: &mut FunctionBuilder<'_>, op: DimOp, x: Value, y: Value) -> Value {
    let ty = b.type_of(x);
    let rest = b.binary(BinaryOp::SRem, x, y);
    let some = b.icmp_imm(IntCC::Ne, rest, 0);
    let signs = b.binary(BinaryOp::Xor, rest, y);
    if op == DimOp::CeilDiv {
        let same = b.icmp_imm(IntCC::SGe, signs, 0);
        let down = b.binary(BinaryOp::And, some, same);
        let quotient = b.binary(BinaryOp::SDiv, x, y);
        let one = b.iconst(ty, 1);
        let more = b.binary(BinaryOp::Add, quotient, one);
        return b.select(down, more, quotient);
    }
    let differ = b.icmp_imm(IntCC::SLt, signs, 0);
    let up = b.binary(BinaryOp::And, some, differ);
    if op == DimOp::Mod {
        let moved = b.binary(BinaryOp::Add, rest, y);
        return b.select(up, moved, rest);
    }
    let quotient = b.binary(BinaryOp::SDiv, x, y);
    let one = b.iconst(ty, 1);
    let less = b.binary(BinaryOp::Sub, quotient, one);
    b.select(up, less, quotient)
}

/// Like [`rounded_division`], for any divisor. Replaces 0 and -1, on which a machine may trap, by 1. The result for -1
/// is selected afterwards; the result for 0 is meaningless.
pub(super) fn total_division(b: &mut FunctionBuilder<'_>, op: DimOp, x: Value, y: Value) -> Value {
    let (zero, one) = (b.i64(0), b.i64(1));
    let (is_zero, is_minus_one) = (b.icmp_imm(IntCC::Eq, y, 0), b.icmp_imm(IntCC::Eq, y, -1));
    let special = b.binary(BinaryOp::Or, is_zero, is_minus_one);
    let divisor = b.select(special, one, y);
    let divided = rounded_division(b, op, x, divisor);
    let negative = if op == DimOp::Mod { zero } else { b.binary(BinaryOp::Sub, zero, x) };
    b.select(is_minus_one, negative, divided)
}

/// Like [`rounded_division`], for any divisor except 0. Dividing the minimum by -1 wraps.
pub(super) fn wrapping_division(b: &mut FunctionBuilder<'_>, op: DimOp, x: Value, y: Value) -> Value {
    let ty = b.type_of(x);
    let (zero, one) = (b.iconst(ty, 0), b.iconst(ty, 1));
    let is_minus_one = b.icmp_imm(IntCC::Eq, y, -1);
    let divisor = b.select(is_minus_one, one, y);
    let divided = rounded_division(b, op, x, divisor);
    let negative = if op == DimOp::Mod { zero } else { b.binary(BinaryOp::Sub, zero, x) };
    b.select(is_minus_one, negative, divided)
}

/// A quotient rounded down or up, or the remainder, of unsigned integers; only for divisors other than 0.
pub(super) fn unsigned_division(b: &mut FunctionBuilder<'_>, op: DimOp, x: Value, y: Value) -> Value {
    match op {
        DimOp::Mod => b.binary(BinaryOp::URem, x, y),
        DimOp::CeilDiv => {
            let (quotient, rest) = (b.binary(BinaryOp::UDiv, x, y), b.binary(BinaryOp::URem, x, y));
            one_more_unless_exact(b, quotient, rest)
        }
        _ => b.binary(BinaryOp::UDiv, x, y),
    }
}

/// Emits the parts of a dimension. The implementation supplies the variables' values, and handles overflows and
/// divisors.
pub(super) trait DimCode {
    /// An `I64`, with what the implementation knows about it.
    type Number;

    /// A constant.
    fn constant(&mut self, value: i64) -> Self::Number;

    /// The value of a variable, if it has one.
    fn var(&mut self, name: &str) -> Option<Self::Number>;

    /// An operation on two values. `divisor` is the second one if it is constant.
    fn operation(&mut self, op: DimOp, x: Self::Number, y: Self::Number, divisor: Option<i64>) -> Self::Number;
}

/// The value of a dimension; `None` if one of its variables has no value.
pub(super) fn lower_dim<C: DimCode>(code: &mut C, dim: &Dim) -> Option<C::Number> {
    match dim {
        Dim::Const(value) => Some(code.constant(*value)),
        Dim::Var(name) => code.var(name),
        Dim::Binary(op, x, y) if op.is_division() => {
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
