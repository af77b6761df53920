//! Expressions become code for the stack machine of `eval`.

use std::collections::HashMap;

use crate::lower::protocol::{Rpn, TARGET};
use crate::spec::{Dim, DimOp};

/// Appends the code that computes `dim`, without an end.
pub(super) fn code(dim: &Dim, symbols: &HashMap<&str, u32>, words: &mut Vec<u32>) {
    match dim {
        Dim::Const(value) => words.extend([Rpn::Const as u32, *value as u32, (*value >> 32) as u32]),
        Dim::Symbol(name) if name == TARGET => words.push(Rpn::Target as u32),
        // every symbol of the signature has a number
        Dim::Symbol(name) => {
            words.extend([Rpn::Symbol as u32, symbols.get(name.as_str()).copied().unwrap_or(0)]);
        }
        Dim::Binary(op, x, y) => {
            code(x, symbols, words);
            code(y, symbols, words);
            words.push(match op {
                DimOp::Add => Rpn::Add,
                DimOp::Sub => Rpn::Sub,
                DimOp::Mul => Rpn::Mul,
                DimOp::FloorDiv => Rpn::FloorDiv,
                DimOp::Mod => Rpn::Mod,
            } as u32);
        }
    }
}
