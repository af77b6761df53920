//! Division of a body's integers: rounded towards zero, down or up.

use super::expr::{Expr, Operand};
use super::function::{BodyLowerer, Failure};
use super::types::ir_type;
use crate::ir::{BinaryOp, IntCC, UnaryOp, Value};
use crate::lower::arithmetic::{division_by_positive, rounded_division, unsigned_division, wrapping_division};
use crate::lower::protocol::Piece;
use crate::spec::DimOp;

#[expect(clippy::return_self_not_must_use, reason = "a body may leave a value unused")]
impl<'b> Expr<'b> {
    /// The quotient of two integers, rounded down: `//` of dimensions. The minimum divided by -1 wraps, as with `/`. A
    /// divisor of 0 raises a `ZeroDivisionError`.
    pub fn floor_div(self, divisor: impl Into<Operand<'b>>) -> Expr<'b> {
        self.rounded("floor_div", DimOp::FloorDiv, divisor.into())
    }

    /// The remainder of [`floor_div`](Self::floor_div), 0 or with the divisor's sign: `%` of dimensions. A divisor of 0
    /// raises a `ZeroDivisionError`.
    pub fn floor_rem(self, divisor: impl Into<Operand<'b>>) -> Expr<'b> {
        self.rounded("floor_rem", DimOp::Mod, divisor.into())
    }

    /// The quotient of two integers, rounded up: `ceil_div` of dimensions. The minimum divided by -1 wraps, as with
    /// `/`. A divisor of 0 raises a `ZeroDivisionError`.
    pub fn ceil_div(self, divisor: impl Into<Operand<'b>>) -> Expr<'b> {
        self.rounded("ceil_div", DimOp::CeilDiv, divisor.into())
    }

    fn rounded(self, operation: &str, op: DimOp, divisor: Operand<'b>) -> Expr<'b> {
        let divisor = self.coerce(operation, divisor);
        if self.is_missing() {
            return self;
        }
        if !self.ty().is_int() {
            return self.unsupported(operation);
        }
        let (x, y) = (self.value, divisor.value);
        let value = self.body.value(|l| match l.checked_divisor(y) {
            _ if !self.ty().is_signed_int() => unsigned_division(&mut l.b, op, x, y),
            Some(1..) => division_by_positive(&mut l.b, op, x, y),
            Some(..-1) => rounded_division(&mut l.b, op, x, y),
            _ => wrapping_division(&mut l.b, op, x, y),
        });
        Expr::new(self.body, value, self.ty()).recorded(|recorder| recorder.numbers(operation, &[self, divisor]))
    }

    /// The IR traps on a zero divisor and on dividing the minimum by -1. The first raises an error. The second must
    /// wrap, so a divisor of -1 is replaced by 1 and the quotient is negated.
    pub(super) fn integer_division(
        self,
        operation: &str,
        other: Operand<'b>,
        signed: BinaryOp,
        unsigned: BinaryOp,
    ) -> Expr<'b> {
        let divisor = self.coerce(operation, other);
        if self.is_missing() {
            return self;
        }
        let (ty, a) = (self.ty(), self.value);
        let value = self.body.value(|l| {
            let constant = l.checked_divisor(divisor.value);
            if !ty.is_signed_int() {
                return l.b.binary(unsigned, a, divisor.value);
            }
            if constant.is_some_and(|c| c != -1) {
                return l.b.binary(signed, a, divisor.value);
            }
            let minus_one = l.b.icmp_imm(IntCC::Eq, divisor.value, -1);
            let one = l.b.iconst(ir_type(ty), 1);
            let safe = l.b.select(minus_one, one, divisor.value);
            let result = l.b.binary(signed, a, safe);
            if signed == BinaryOp::SRem {
                // the remainder is 0 for a divisor of 1 as well as of -1
                return result;
            }
            let negated = l.b.unary(UnaryOp::Neg, result);
            l.b.select(minus_one, negated, result)
        });
        Expr::new(self.body, value, ty).recorded(|recorder| recorder.numbers(operation, &[self, divisor]))
    }
}

impl BodyLowerer<'_> {
    /// Raises an error unless a divisor differs from 0. Returns the divisor if it is constant.
    fn checked_divisor(&mut self, divisor: Value) -> Option<i64> {
        let constant = self.b.as_int_const(divisor);
        if constant.is_none_or(|c| c == 0) {
            let nonzero = self.b.icmp_imm(IntCC::Ne, divisor, 0);
            self.check(nonzero, |l| {
                let parts = [Piece::Text("integer division or modulo by zero")];
                Failure { template: l.pool.constants.template("ZeroDivisionError", &parts), values: Vec::new() }
            });
        }
        constant
    }
}
