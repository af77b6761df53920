//! Errors of the interpreter.

use std::fmt::{self, Display, Formatter};

use target_lexicon::Endianness;

use crate::ir::types::{PointerFacts, Type};

/// Why an instruction can't be executed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum TrapReason {
    /// The divisor is 0.
    DivisionByZero,
    /// The minimum integer is divided by -1.
    DivisionOverflow,
    /// A load, store or call at an address in the first page, usually near null.
    NullAccess(u64),
    /// A load or store marked as aligned, at an unaligned address.
    Misaligned(u64),
    /// A pointer argument that contradicts the function's facts about its parameter.
    BrokenFact {
        /// The facts.
        facts: PointerFacts,
        /// The address.
        address: u64,
    },
}

impl Display for TrapReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TrapReason::DivisionByZero => f.write_str("division by zero"),
            TrapReason::DivisionOverflow => f.write_str("division of the least integer by -1"),
            TrapReason::NullAccess(address) => write!(f, "access through null at {address:#x}"),
            TrapReason::Misaligned(address) => write!(f, "an access that claims alignment at {address:#x}"),
            TrapReason::BrokenFact { facts, address } => write!(f, "{address:#x} is said to be{facts}"),
        }
    }
}

/// An error of the interpreter: it can't be created, or a run has no result.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterpError {
    /// The host lacks imports; lists all of them.
    #[error("imports that the host does not have: {}", .names.join(", "))]
    MissingImports {
        /// The symbols.
        names: Vec<String>,
    },
    /// The module is for machines with another byte order than this one.
    #[error("the module is for {module:?}-endian machines")]
    Endianness {
        /// The module's byte order.
        module: Endianness,
    },
    /// The module contains something that only an object file supports.
    #[error("{what} can't be interpreted, only put into an object file")]
    OnlyInObjects {
        /// The unsupported part, in words.
        what: String,
    },
    /// There isn't enough memory for data or a frame.
    #[error("no memory for {what}")]
    OutOfMemory {
        /// The data, or the function whose slots need the memory.
        what: String,
    },
    /// The module defines no function of that name; it may still import it.
    #[error("the module defines no function {name:?}")]
    NoSuchFunction {
        /// The name.
        name: String,
    },
    /// The arguments of a run don't fit the function's signature.
    #[error("arguments {args:?} for {function}{signature}")]
    Arguments {
        /// The function.
        function: String,
        /// The function's signature.
        signature: String,
        /// The types of the given arguments.
        args: Vec<Type>,
    },
    /// An instruction can't be executed.
    #[error("{reason}, in {function}, {location}")]
    Trap {
        /// The function.
        function: String,
        /// The instruction: block, number and listing.
        location: String,
        /// The reason.
        reason: TrapReason,
    },
    /// The host reported an error, or returned a result of another type than the signature's.
    #[error("{message}, in {function}, {location}")]
    Host {
        /// The function that called.
        function: String,
        /// The call: block, number and listing.
        location: String,
        /// The host's message.
        message: String,
    },
    /// The run took more steps than its fuel.
    #[error("out of fuel after {fuel} steps in {function}")]
    OutOfFuel {
        /// The function that was running.
        function: String,
        /// The maximum number of steps.
        fuel: u64,
    },
    /// Calls inside the module, or callbacks from native code, are nested too deeply.
    #[error("more than {limit} nested calls, at a call of {function}")]
    TooDeep {
        /// The function that would be called next.
        function: String,
        /// The maximum number of nested calls.
        limit: usize,
    },
}
