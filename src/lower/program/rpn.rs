//! Expressions as code for a stack machine.

use std::collections::HashMap;

use crate::spec::{Dim, DimOp};

/// An instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(in crate::lower) enum Rpn {
    End,
    /// Pushes the number in the two words behind.
    Const,
    /// Pushes the value of the symbol whose number is behind.
    Symbol,
    /// Pushes what the expression has to be.
    Target,
    Add,
    Sub,
    Mul,
    FloorDiv,
    Mod,
}

impl Rpn {
    /// The most values on the stack: expressions are at most [`MAX_DIM_DEPTH`](crate::spec::MAX_DIM_DEPTH) deep, and no more than twice as deep once solved for
    /// a symbol.
    pub(in crate::lower) const STACK: u32 = 2 * crate::spec::MAX_DIM_DEPTH as u32 + 2;
}

/// The name that stands for what the expression has to be.
pub(in crate::lower) const TARGET: &str = "";

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
