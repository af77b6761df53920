//! Expressions as code for a stack machine.

/// An instruction of the stack machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(in crate::lower) enum Opcode {
    End,
    /// Pushes the number in the two words behind.
    Const,
    /// Pushes the value of the symbol whose number is behind.
    Symbol,
    /// Pushes the value that the expression has to have.
    Target,
    Add,
    Sub,
    Mul,
    FloorDiv,
    Mod,
    CeilDiv,
    Min,
    Max,
}

impl Opcode {
    /// The most values on the stack: expressions are at most [`MAX_DIM_DEPTH`](crate::spec::MAX_DIM_DEPTH) deep, and no more than twice as deep once solved for
    /// a symbol.
    pub(in crate::lower) const STACK: u32 = 2 * crate::spec::MAX_DIM_DEPTH as u32 + 2;
}

/// The name that stands for the value that the expression has to have.
pub(in crate::lower) const TARGET: &str = "";
