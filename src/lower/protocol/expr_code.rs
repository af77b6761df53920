//! The code of expressions, for a stack machine.

/// An instruction of the stack machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(in crate::lower) enum Opcode {
    End,
    /// Pushes the number in the two words that follow.
    Const,
    /// Pushes the value of the variable with the number in the word that follows.
    Var,
    /// Pushes the value that the expression must have.
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
    /// The max stack depth. Expressions have a depth of at most [`MAX_DIM_DEPTH`](crate::spec::MAX_DIM_DEPTH), and at
    /// most twice that when solved for a variable.
    pub(in crate::lower) const STACK: u32 = 2 * crate::spec::MAX_DIM_DEPTH as u32 + 2;
}

/// The placeholder name of the value that the expression must have.
pub(in crate::lower) const TARGET: &str = "";
