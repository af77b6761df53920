//! Rust's operators on [`Expr`], by the methods of [`super::expr`].

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
