//! Expressions as code for a stack machine.

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
