//! Translates expressions into code for the stack machine of `eval`.

use std::collections::HashMap;

use crate::lower::protocol::{Opcode, TARGET};
use crate::spec::{Dim, DimOp};

/// The numbers of a signature's variables.
pub(super) struct DimVars<'a>(HashMap<&'a str, u32>);

impl<'a> DimVars<'a> {
    /// Numbers these names in order.
    pub(super) fn new(names: Vec<&'a str>) -> Self {
        DimVars(names.into_iter().zip(0..).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether a name is a variable.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The number of a variable.
    ///
    /// # Errors
    /// The signature has no such variable, which is a bug; the message names it.
    pub(super) fn number(&self, name: &str) -> Result<u32, String> {
        self.0.get(name).copied().ok_or_else(|| format!("the number of the dimension variable {name}"))
    }
}

/// Appends the code that computes `dim`, without an end instruction.
pub(super) fn code(dim: &Dim, vars: &DimVars<'_>, words: &mut Vec<u32>) -> Result<(), String> {
    match dim {
        Dim::Const(value) => words.extend([Opcode::Const as u32, *value as u32, (*value >> 32) as u32]),
        Dim::Var(name) if name == TARGET => words.push(Opcode::Target as u32),
        Dim::Var(name) => words.extend([Opcode::Var as u32, vars.number(name)?]),
        Dim::Binary(op, x, y) => {
            code(x, vars, words)?;
            code(y, vars, words)?;
            words.push(match op {
                DimOp::Add => Opcode::Add,
                DimOp::Sub => Opcode::Sub,
                DimOp::Mul => Opcode::Mul,
                DimOp::FloorDiv => Opcode::FloorDiv,
                DimOp::Mod => Opcode::Mod,
                DimOp::CeilDiv => Opcode::CeilDiv,
                DimOp::Min => Opcode::Min,
                DimOp::Max => Opcode::Max,
            } as u32);
        }
    }
    Ok(())
}
