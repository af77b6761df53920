//! What can be wrong with a kernel or a body.

use std::fmt;

use super::kernel::Convention;

/// One mistake in a body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BodyMistake {
    /// The operation that was asked for: `load`, `tensor("x")`, ...
    pub operation: String,
    /// What is wrong with it.
    pub problem: String,
}

impl fmt::Display for BodyMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.problem)
    }
}

/// Why a signature and a kernel don't become a wrapper.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LowerError {
    /// Two functions of one name in one module.
    #[error("function `{name}` is defined twice; give each wrapper of a module a name of its own")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// The kernel's symbol is no symbol.
    #[error("kernel symbol {symbol:?} of function `{function}` is empty or holds a NUL byte")]
    KernelName {
        /// The function.
        function: String,
        /// The symbol as given.
        symbol: String,
    },
    /// The kernel's symbol already means something else in the module.
    #[error("the kernel of function `{function}` is the symbol `{symbol}`, which the module already has as {found}")]
    SymbolConflict {
        /// The function.
        function: String,
        /// The kernel's symbol.
        symbol: String,
        /// What the module has.
        found: String,
    },
    /// The wrapper would need too much of its caller's stack.
    #[error(
        "function `{function}` has too many dimensions: its wrapper needs {bytes} bytes of stack, and may use {most}"
    )]
    TooLarge {
        /// The function.
        function: String,
        /// What it needs.
        bytes: u32,
        /// The limit.
        most: u32,
    },
    /// The kernel's convention can't pass what the signature has.
    #[error("the kernel of function `{function}` can't be called by the convention {convention}: {problem}")]
    Convention {
        /// The function.
        function: String,
        /// The convention.
        convention: Convention,
        /// What doesn't fit.
        problem: String,
    },
    /// The kernel can't return what the signature says, or the other way round.
    #[error("the kernel of function `{function}` {problem}")]
    KernelReturn {
        /// The function.
        function: String,
        /// What doesn't fit.
        problem: String,
    },
    /// The body has mistakes; all of them are here.
    #[error("the body of function `{function}` has mistakes:{}", list(.mistakes))]
    Body {
        /// The function.
        function: String,
        /// At least one.
        mistakes: Vec<BodyMistake>,
    },
}

fn list(mistakes: &[BodyMistake]) -> String {
    mistakes.iter().map(|m| format!("\n  {m}")).collect()
}
