//! The verifier's rules, and its reports of broken ones.

use std::fmt::{self, Display, Formatter};

use crate::ir::inst::{Block, FuncRef, Inst};

/// The verifier's rules, numbered as in the list at the head of its source and in this order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Rule {
    /// Names are unique, not empty, without NUL.
    Symbols = 1,
    /// Imports have no body; other functions have one.
    Bodies,
    /// No `Bool` in signatures, and structs only as `I32` and `I64`.
    SignatureTypes,
    /// Extensions only on `I8`, `I16`, `I32`.
    Extensions,
    /// Alignments are powers of two.
    Alignment,
    /// The entry block exists and fits the signature.
    Entry,
    /// Every block has a terminator.
    Terminators,
    /// Every named entity exists.
    References,
    /// An instruction is in at most one block, once.
    Placement,
    /// Values and their definitions refer to each other.
    Definitions,
    /// Definitions dominate uses.
    Dominance,
    /// Branch arguments fit the target's parameters.
    BranchArguments,
    /// Nothing branches to the entry block.
    EntryTarget,
    /// Conditions are `Bool`.
    Conditions,
    /// Returns fit the signature.
    Returns,
    /// Operand types fit the operation.
    OperandTypes,
    /// Results fit the operation.
    Results,
    /// Loads and stores have memory types.
    Memory,
    /// Call arguments fit the callee.
    Calls,
    /// Offsets into data are at most its length.
    DataOffsets,
    /// Facts describe pointer parameters.
    Facts,
    /// Addresses in data refer to functions of the module, including imports, each in its own 8 aligned bytes.
    Addresses,
    /// Constructors and destructors are functions `()` defined here.
    Constructors,
    /// State is all zeros, without addresses.
    State,
}

impl Rule {
    /// The rule's number.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The rule as a sentence.
    pub const fn text(self) -> &'static str {
        match self {
            Rule::Symbols => "names are unique, not empty and without NUL",
            Rule::Bodies => "an import has no body, any other function has one",
            Rule::SignatureTypes => {
                "no signature has a bool, and structs are i32, i64, or parameters of functions outside the module"
            }
            Rule::Extensions => "only i8, i16 and i32 have an extension",
            Rule::Alignment => "alignments are powers of two",
            Rule::Entry => "the entry block is there and its parameters are the signature's",
            Rule::Terminators => "every block has a terminator",
            Rule::References => "whatever is named exists",
            Rule::Placement => "an instruction is in at most one block, once",
            Rule::Definitions => "values and their definitions name each other",
            Rule::Dominance => "a definition dominates its uses",
            Rule::BranchArguments => "branch arguments are those of the target",
            Rule::EntryTarget => "nothing branches to the entry block",
            Rule::Conditions => "conditions are bool",
            Rule::Returns => "a return has what the signature says",
            Rule::OperandTypes => "operands are of the operation's types",
            Rule::Results => "a result is the operation's",
            Rule::Memory => "no bool is loaded or stored, and no store is read-only",
            Rule::Calls => "call arguments are those of the callee",
            Rule::DataOffsets => "an offset into data is at most its length",
            Rule::Facts => "facts are of pointer parameters, their alignments powers of two",
            Rule::Addresses => "addresses in data are of functions, in 8 aligned bytes each",
            Rule::Constructors => "a constructor or destructor is defined here and takes and returns nothing",
            Rule::State => "state is all zeros, without addresses",
        }
    }
}

impl Display for Rule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} ({})", self.number(), self.text())
    }
}

/// The place of a [`Problem`] in its function or data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ProblemLocation {
    /// The declaration, or the function as a whole.
    Declaration,
    /// A block, including its parameters.
    Block(Block),
    /// An instruction of the block.
    Inst(Block, Inst),
    /// The block's terminator.
    Terminator(Block),
}

/// A broken rule with its place.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Problem {
    /// The rule.
    pub rule: Rule,
    /// The function; `None` for data.
    pub function: Option<FuncRef>,
    /// The name of that function, or of the data.
    pub symbol: String,
    /// The place in the function.
    pub place: ProblemLocation,
    /// The listing of the instruction or terminator, if the place is one.
    pub code: Option<String>,
    /// The problem in words.
    pub detail: String,
}

impl Display for Problem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let what = if self.function.is_some() { "function" } else { "data" };
        write!(f, "{what} {:?}", self.symbol)?;
        match self.place {
            ProblemLocation::Declaration => {}
            ProblemLocation::Block(block) | ProblemLocation::Terminator(block) => write!(f, ", {block}")?,
            ProblemLocation::Inst(block, inst) => write!(f, ", {block}, {inst}")?,
        }
        if let Some(code) = &self.code {
            write!(f, ", `{code}`")?;
        }
        write!(f, ": {}; {}", self.detail, self.rule)
    }
}
