//! The verifier: what every module must keep before anything compiles or runs it.
//!
//! It accepts any module without panicking, however malformed. What it passes has a meaning in full: a
//! backend and the interpreter index, match types and look up definitions without checking again.
//!
//! Of the module:
//!
//!  1. Every function and every piece of data has a name, not empty and without NUL, that no other has.
//!  2. An import has no body; any other function has one.
//!  3. No signature, of a function or of an indirect call, has a `Bool`, and only an `I32` or `I64` in it is a struct.
//!  4. Only an `I8`, `I16` or `I32` in a signature has an extension.
//!  5. Alignments of data and stack slots are powers of two.
//!
//! Of each function's body:
//!
//!  6. There is an entry block, and its parameters are the signature's.
//!  7. Every block has a terminator.
//!  8. Every block, value, instruction, slot, signature, function and data that is named exists.
//!  9. An instruction is in at most one block, once.
//! 10. Values and their definitions name each other: a parameter by block and place, a result by instruction.
//! 11. A used value is a block's parameter or the result of an instruction in a block, and the definition
//!     dominates the use. In a block that nothing reaches, being there is enough.
//! 12. A branch gives its target as many arguments as that has parameters, of their types.
//! 13. Nothing branches to the entry block.
//! 14. Conditions, of a branch or a select, are `Bool`.
//! 15. A return has what the signature says: a value of its type, or none.
//! 16. Operands and named types are those that the operation is documented for.
//! 17. An instruction has a result just if its operation has one, of the operation's type.
//! 18. No `Bool` is loaded or stored, and no store claims read-only memory.
//! 19. A call gives its callee as many arguments as that has parameters, of their types.
//! 20. An offset into data is at most the data's length.
//!
//! And of each function again:
//!
//! 21. There are facts of no parameter, or of as many as there are; of one that isn't a pointer they say nothing, and their
//!     alignments are powers of two.
//!
//! And of the module, as an object file can have it:
//!
//! 22. Where data holds the address of a function, the module defines that function, and 8 aligned bytes of the data are there.
//! 23. A constructor or a destructor is a function that the module defines, without parameters and result.
//! 24. State is all zeros, and holds no address of a function.

mod dominators;
mod function;
#[cfg(test)]
mod tests;
mod typing;

use std::collections::HashSet;
use std::fmt::{self, Display, Formatter};
use std::ops::Deref;

use super::inst::{Block, FuncRef, Inst};
use super::module::{Data, DataKind, FuncDecl, Linkage, Module};
use super::types::{Extension, FuncSig, PointerFacts, Type};

/// The verifier's rules, numbered as in the list at the head of its source and in this order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Rule {
    /// Names are unique, not empty, without NUL.
    Symbols = 1,
    /// Imports have no body, other functions one.
    Bodies,
    /// No `Bool` in signatures, and structs only as `I32` and `I64`.
    SignatureTypes,
    /// Extensions only on `I8`, `I16`, `I32`.
    Extensions,
    /// Alignments are powers of two.
    Alignment,
    /// The entry block is there and fits the signature.
    Entry,
    /// Every block has a terminator.
    Terminators,
    /// Every entity named exists.
    References,
    /// An instruction is in at most one block, once.
    Placement,
    /// Values and their definitions name each other.
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
    /// Operand types are the operation's.
    OperandTypes,
    /// Results are the operation's.
    Results,
    /// Loads and stores are of types that memory has.
    Memory,
    /// Call arguments fit the callee.
    Calls,
    /// Offsets into data are at most its length.
    DataOffsets,
    /// Facts are of pointer parameters.
    Facts,
    /// Addresses in data are of functions of the module, imports among them, each in its 8 aligned bytes.
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

    /// The rule in words.
    pub const fn text(self) -> &'static str {
        match self {
            Rule::Symbols => "names are unique, not empty and without NUL",
            Rule::Bodies => "an import has no body, any other function has one",
            Rule::SignatureTypes => "no signature has a bool, or a struct that isn't i32 or i64",
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
pub enum Place {
    /// The declaration, or the function as a whole.
    Declaration,
    /// A block, its parameters included.
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
    /// In which function; `None` for data.
    pub function: Option<FuncRef>,
    /// The name of that function, or of the data.
    pub symbol: String,
    /// The place in the function.
    pub place: Place,
    /// The text of the instruction or terminator, if the place is one.
    pub code: Option<String>,
    /// The problem in words.
    pub detail: String,
}

impl Display for Problem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let what = if self.function.is_some() { "function" } else { "data" };
        write!(f, "{what} {:?}", self.symbol)?;
        match self.place {
            Place::Declaration => {}
            Place::Block(block) | Place::Terminator(block) => write!(f, ", {block}")?,
            Place::Inst(block, inst) => write!(f, ", {block}, {inst}")?,
        }
        if let Some(code) = &self.code {
            write!(f, ", `{code}`")?;
        }
        write!(f, ": {}; {}", self.detail, self.rule)
    }
}

/// A module that keeps every rule: what backends and the interpreter take.
#[derive(Clone, Debug)]
pub struct VerifiedModule(Module);

impl VerifiedModule {
    /// The module as it is, or verified if `check`: for what lowering has made, which keeps every rule unless it has a mistake.
    #[cfg_attr(not(feature = "_engine"), allow(dead_code))] // an object is made by a backend
    pub(crate) fn lowered(module: Module, check: bool) -> Result<Self, VerifyError> {
        if check { verify(module) } else { Ok(VerifiedModule(module)) }
    }

    /// The module, to read.
    pub fn module(&self) -> &Module {
        &self.0
    }

    /// The module, to change; it has to be verified again.
    pub fn into_inner(self) -> Module {
        self.0
    }
}

impl Deref for VerifiedModule {
    type Target = Module;

    fn deref(&self) -> &Module {
        &self.0
    }
}

impl Display for VerifiedModule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The error of [`verify`]: every broken rule of a module. Its text has the listings of the functions concerned, since whoever sees
/// one has found a bug in a lowering and needs the IR.
pub struct VerifyError {
    // Boxed, so that the error costs a successful `Result` no room.
    module: Box<Module>,
    problems: Vec<Problem>,
}

impl VerifyError {
    /// The broken rules, at least one.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The module that broke them.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Gives the module back.
    pub fn into_module(self) -> Module {
        *self.module
    }
}

impl Display for VerifyError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let n = self.problems.len();
        write!(f, "the IR verifier found {n} problem{}:", if n == 1 { "" } else { "s" })?;
        for problem in &self.problems {
            write!(f, "\n  {problem}")?;
        }
        // Problems come function by function.
        let mut functions: Vec<FuncRef> = self.problems.iter().filter_map(|p| p.function).collect();
        functions.dedup();
        for func in functions {
            write!(f, "\n\n{}", self.module.display_function(func))?;
        }
        Ok(())
    }
}

impl fmt::Debug for VerifyError {
    /// As `Display`: this is what `unwrap` shows.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl std::error::Error for VerifyError {}

/// Checks every rule; the error lists all that are broken and gives the module back.
pub fn verify(module: Module) -> Result<VerifiedModule, VerifyError> {
    let mut problems = Vec::new();
    let mut names: HashSet<&str> = HashSet::with_capacity(module.functions.len() + module.data.len());
    for (func, decl) in &module.functions {
        let mut report = |rule, detail| {
            let symbol = decl.name.clone();
            let place = Place::Declaration;
            problems.push(Problem { rule, function: Some(func), symbol, place, code: None, detail });
        };
        check_symbol(&mut names, &decl.name, &mut report);
        check_signature(&decl.signature, "", &mut report);
        check_facts(decl, &mut report);
        match (&decl.body, decl.linkage) {
            (None, Linkage::Import) => {}
            (Some(_), Linkage::Import) => report(Rule::Bodies, "the import has a body".into()),
            (None, _) => report(Rule::Bodies, "there is no body".into()),
            (Some(body), _) => function::check(&module, func, decl, body, &mut problems),
        }
    }
    for data in module.data.values() {
        let mut report = |rule, detail| {
            let symbol = data.name.clone();
            problems.push(Problem { rule, function: None, symbol, place: Place::Declaration, code: None, detail });
        };
        check_symbol(&mut names, &data.name, &mut report);
        if !data.align.is_power_of_two() {
            report(Rule::Alignment, format!("the alignment is {}", data.align));
        }
        check_addresses(&module, data, &mut report);
        if data.kind == DataKind::State && (!data.addresses.is_empty() || data.bytes.iter().any(|byte| *byte != 0)) {
            report(Rule::State, "it has contents".into());
        }
    }
    let constructors = module.constructors.iter().map(|func| (*func, "a constructor"));
    let destructors = module.destructors.iter().map(|func| (*func, "a destructor"));
    for (func, what) in constructors.chain(destructors) {
        let decl = module.functions.get(func);
        let fits = |decl: &FuncDecl| decl.body.is_some() && decl.signature == FuncSig::default();
        if !decl.is_some_and(fits) {
            let symbol = decl.map_or_else(|| func.to_string(), |decl| decl.name.clone());
            let (function, detail) = (decl.map(|_| func), format!("it is {what}"));
            let (rule, place) = (Rule::Constructors, Place::Declaration);
            problems.push(Problem { rule, function, symbol, place, code: None, detail });
        }
    }
    if problems.is_empty() {
        Ok(VerifiedModule(module))
    } else {
        Err(VerifyError { module: Box::new(module), problems })
    }
}

fn check_symbol<'m>(names: &mut HashSet<&'m str>, name: &'m str, report: &mut impl FnMut(Rule, String)) {
    if name.is_empty() {
        report(Rule::Symbols, "the name is empty".into());
    } else if name.contains('\0') {
        report(Rule::Symbols, "the name has a NUL".into());
    }
    if !names.insert(name) {
        report(Rule::Symbols, "the name is taken".into());
    }
}

fn check_addresses(module: &Module, data: &Data, report: &mut impl FnMut(Rule, String)) {
    for &(offset, func) in &data.addresses {
        if module.functions.get(func).is_none() {
            report(Rule::Addresses, format!("{func}, whose address is at {offset}, isn't there"));
        }
        let there = offset as usize + 8 <= data.bytes.len();
        if !there || !offset.is_multiple_of(8) || !data.align.is_multiple_of(8) {
            let (len, align) = (data.bytes.len(), data.align);
            report(Rule::Addresses, format!("an address is at {offset} of {len} bytes aligned to {align}"));
        }
    }
}

fn check_facts(decl: &FuncDecl, report: &mut impl FnMut(Rule, String)) {
    let (facts, params) = (&decl.param_facts, &decl.signature.params);
    if !facts.is_empty() && facts.len() != params.len() {
        report(Rule::Facts, format!("there are facts of {} parameters, and {} parameters", facts.len(), params.len()));
    }
    for (i, (facts, param)) in facts.iter().zip(params).enumerate() {
        if param.ty != Type::Ptr && *facts != PointerFacts::NONE {
            report(Rule::Facts, format!("parameter {i} is {}, and said to be{facts}", param.ty));
        } else if !facts.align.is_power_of_two() {
            report(Rule::Facts, format!("parameter {i} is aligned to {}", facts.align));
        }
    }
}

/// `of` says whose signature it is, as the start of a sentence, if not the function's own.
fn check_signature(sig: &FuncSig, of: &str, report: &mut impl FnMut(Rule, String)) {
    let params = sig.params.iter().enumerate().map(|(i, param)| (Some(i), param));
    for (i, param) in params.chain(sig.ret.iter().map(|ret| (None, ret))) {
        let which = || i.map_or("the result".to_owned(), |i| format!("parameter {i}"));
        if param.ty == Type::Bool {
            report(Rule::SignatureTypes, format!("{of}{} is a bool", which()));
        }
        if param.aggregate && !matches!(param.ty, Type::I32 | Type::I64) {
            report(Rule::SignatureTypes, format!("{of}{} is `{param}`", which()));
        }
        if param.ext != Extension::None && !matches!(param.ty, Type::I8 | Type::I16 | Type::I32) {
            report(Rule::Extensions, format!("{of}{} is `{param}`", which()));
        }
    }
}
