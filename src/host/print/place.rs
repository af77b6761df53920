//! The places that values may stand in without parentheses.

use crate::host::tree::{BinaryOp, Expr, ExprKind, Scoped, UnaryOp};

/// A place for any value: a call, a closure or a value with `as` as well.
pub(super) const VALUE: u8 = 0;
/// A place for any expression. The places after it take operators that bind more tightly.
pub(super) const EXPR: u8 = 1;
pub(super) const CLAIM: u8 = 3;
pub(super) const UNARY: u8 = 10;
pub(super) const POSTFIX: u8 = 11;

/// How tightly an operator binds.
pub(super) fn precedence(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Or => EXPR,
        BinaryOp::And => 2,
        BinaryOp::BitOr => 4,
        BinaryOp::BitXor => 5,
        BinaryOp::BitAnd => 6,
        BinaryOp::Shl | BinaryOp::Shr => 7,
        BinaryOp::Add | BinaryOp::Sub => 8,
        BinaryOp::Mul | BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::FloorRem => 9,
    }
}

/// The tightest place that takes a value without parentheses.
pub(super) fn place_of(expr: &Expr) -> u8 {
    match &*expr.kind {
        ExprKind::Call(_) | ExprKind::As(..) | ExprKind::Closure(_) => VALUE,
        // parentheses make it readable beside an operator
        ExprKind::Chosen(..) => EXPR,
        ExprKind::Chain(_, rest) => rest.first().map_or(POSTFIX, |(op, _)| precedence(op.value)),
        ExprKind::Compare(..) | ExprKind::Unary(UnaryOp::Not, _) => CLAIM,
        ExprKind::Unary(UnaryOp::Neg | UnaryOp::Invert, _) => UNARY,
        // a digit before a dot would be a part of a number
        ExprKind::Int(_) | ExprKind::Float(_) => UNARY,
        _ => POSTFIX,
    }
}

/// True if an expression begins with `if`.
pub(super) fn begins_with_if(expr: &Expr) -> bool {
    matches!(*expr.kind, ExprKind::Chosen(..))
}

/// True if a block and its value fit on one line.
pub(super) fn is_short(scoped: &Scoped) -> bool {
    let is_chosen = matches!(*scoped.value.kind, ExprKind::Chosen(..));
    scoped.block.statements.is_empty() && !is_chosen
}
