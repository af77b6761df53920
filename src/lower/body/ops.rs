//! Rust's operators on [`Expr`], using the methods of [`super::expr`].
//!
//! On the left, only `i64`, `f64` and `bool` are supported: one type of each kind. With two float types Rust couldn't
//! infer the type of `2.0 * x` before it has seen the whole function, and would reject `(2.0 * x).exp()`. Use an
//! [`Operand`] for all other types.

use super::expr::{Expr, Operand};
use crate::ir::BinaryOp;

macro_rules! binary_operators {
    ($($Trait:ident::$method:ident($a:ident, $b:ident) => $with:expr;)*) => {$(
        impl<'b, O: Into<Operand<'b>>> std::ops::$Trait<O> for Expr<'b> {
            type Output = Expr<'b>;

            fn $method(self, other: O) -> Expr<'b> {
                let ($a, $b) = (self, other.into());
                $with
            }
        }
    )*};
}

binary_operators! {
    Add::add(a, b) => a.add_op(b);
    Sub::sub(a, b) => a.sub_op(b);
    Mul::mul(a, b) => a.mul_op(b);
    Div::div(a, b) => a.div_op(b);
    Rem::rem(a, b) => a.rem_op(b);
    BitAnd::bitand(a, b) => a.bit_op("and", b, BinaryOp::And);
    BitOr::bitor(a, b) => a.bit_op("or", b, BinaryOp::Or);
    BitXor::bitxor(a, b) => a.bit_op("xor", b, BinaryOp::Xor);
    Shl::shl(a, b) => a.shl_op(b);
    Shr::shr(a, b) => a.shr_op(b);
}

macro_rules! left_operators {
    ($($Trait:ident::$method:ident $operation:literal: $($from:ty),*;)*) => {$($(
        impl<'b> std::ops::$Trait<Expr<'b>> for $from {
            type Output = Expr<'b>;

            fn $method(self, other: Expr<'b>) -> Expr<'b> {
                std::ops::$Trait::$method(other.left($operation, self.into()), other)
            }
        }
    )*)*};
}
left_operators! {
    Add::add "add": i64, f64, Operand<'b>;
    Sub::sub "sub": i64, f64, Operand<'b>;
    Mul::mul "mul": i64, f64, Operand<'b>;
    Div::div "div": i64, f64, Operand<'b>;
    Rem::rem "rem": i64, f64, Operand<'b>;
    BitAnd::bitand "and": i64, bool, Operand<'b>;
    BitOr::bitor "or": i64, bool, Operand<'b>;
    BitXor::bitxor "xor": i64, bool, Operand<'b>;
    Shl::shl "shl": i64, Operand<'b>;
    Shr::shr "shr": i64, Operand<'b>;
}

impl<'b> std::ops::Neg for Expr<'b> {
    type Output = Expr<'b>;

    fn neg(self) -> Expr<'b> {
        self.neg_op()
    }
}

impl<'b> std::ops::Not for Expr<'b> {
    type Output = Expr<'b>;

    fn not(self) -> Expr<'b> {
        self.not_op()
    }
}
