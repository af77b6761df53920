//! The verifier: the rules that every module must fulfil before it is compiled or run.
//!
//! It accepts any module without panicking, however malformed. A module that passes has fully defined semantics:
//! backends and the interpreter index, match types and look up definitions without further checks.
//!
//! Rules for the module:
//!
//!  1. Every function and every data object has a unique name, not empty and without NUL.
//!  2. An import has no body; every other function has one.
//!  3. No signature, of a function or of an indirect call, contains a `Bool`. A struct in it is an `I32` or `I64`, or
//!     it is the address of a struct by value, a parameter of an import or of an indirect call.
//!  4. Only an `I8`, `I16` or `I32` in a signature has an extension.
//!  5. Alignments of data and stack slots are powers of two.
//!
//! Rules for each function's body:
//!
//!  6. There is an entry block, and its parameters are the signature's.
//!  7. Every block has a terminator.
//!  8. Every named block, value, instruction, slot, signature, function and data object exists.
//!  9. An instruction is in at most one block, once.
//! 10. Values and their definitions refer to each other: a parameter by block and index, a result by instruction.
//! 11. A used value is a block's parameter or the result of an instruction in a block, and the definition
//!     dominates the use. In an unreachable block it only has to exist.
//! 12. A branch passes as many arguments as its target has parameters, of their types.
//! 13. Nothing branches to the entry block.
//! 14. Conditions, of a branch or a select, are `Bool`.
//! 15. A return matches the signature: a value of its type, or none.
//! 16. Operands and named types are those documented for the operation.
//! 17. An instruction has a result if and only if its operation has one, of the operation's type.
//! 18. `Bool` is neither loaded nor stored, and no store is marked read-only.
//! 19. A call passes as many arguments as its callee has parameters, of their types.
//! 20. An offset into data is at most the data's length.
//!
//! A rule for each function's declaration:
//!
//! 21. There are facts for no parameter or for all. Those of a non-pointer parameter are empty, and alignments are
//!     powers of two.
//!
//! Rules for the parts of a module that object files can have:
//!
//! 22. If data contains the address of a function, the function is in the module, and the data has 8 aligned bytes for
//!     it.
//! 23. A constructor or destructor is a function that the module defines, without parameters or a result.
//! 24. State is all zeros, and contains no function addresses.

mod dominators;
mod function;
mod problem;
mod signature;
#[cfg(test)]
mod tests;
mod typing;

use std::collections::HashSet;
use std::fmt::{self, Display, Formatter};
use std::ops::Deref;

use super::inst::FuncRef;
use super::module::{Data, DataKind, FuncDecl, Linkage, Module};
use super::types::{FuncSig, PointerFacts, Type};

pub use problem::{Problem, ProblemLocation, Rule};
use signature::{check_defined, check_signature};

/// A module that fulfils every rule, as backends and the interpreter require.
#[derive(Clone, Debug)]
pub struct VerifiedModule(Module);

impl VerifiedModule {
    /// Wraps a module from lowering, and verifies it if `check`. Lowering's output fulfils every rule unless lowering
    /// has a bug.
    #[cfg_attr(not(feature = "_engine"), allow(dead_code))] // only backends use it
    pub(crate) fn lowered(module: Module, check: bool) -> Result<Self, VerifyError> {
        if check { verify(module) } else { Ok(VerifiedModule(module)) }
    }

    /// The module, read-only.
    pub fn module(&self) -> &Module {
        &self.0
    }

    /// The module, for changes. It has to be verified again.
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

/// The error of [`verify`]: every broken rule of a module. Its message includes the listings of the affected functions:
/// such an error is a bug in a lowering, and finding it needs the IR.
pub struct VerifyError {
    // Boxed, so the error doesn't enlarge a successful `Result`.
    module: Box<Module>,
    problems: Vec<Problem>,
}

impl VerifyError {
    /// The broken rules, at least one.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The module that broke the rules.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Returns the module.
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
        // Problems are grouped by function.
        let mut functions: Vec<FuncRef> = self.problems.iter().filter_map(|p| p.function).collect();
        functions.dedup();
        for func in functions {
            write!(f, "\n\n{}", self.module.display_function(func))?;
        }
        Ok(())
    }
}

impl fmt::Debug for VerifyError {
    /// The same as `Display`, because `unwrap` shows this.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl std::error::Error for VerifyError {}

/// Checks every rule. The error lists all broken rules and contains the module.
pub fn verify(module: Module) -> Result<VerifiedModule, VerifyError> {
    let mut problems = Vec::new();
    let mut names: HashSet<&str> = HashSet::with_capacity(module.functions.len() + module.data.len());
    for (func, decl) in &module.functions {
        let mut report = |rule, detail| {
            let symbol = decl.name.clone();
            let place = ProblemLocation::Declaration;
            problems.push(Problem { rule, function: Some(func), symbol, place, code: None, detail });
        };
        check_symbol(&mut names, &decl.name, &mut report);
        check_signature(&decl.signature, "", &mut report);
        check_facts(decl, &mut report);
        if decl.linkage != Linkage::Import {
            check_defined(&decl.signature, &mut report);
        }
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
            problems.push(Problem {
                rule,
                function: None,
                symbol,
                place: ProblemLocation::Declaration,
                code: None,
                detail,
            });
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
            let (rule, place) = (Rule::Constructors, ProblemLocation::Declaration);
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
