//! The errors that a kernel or a body can have.

use std::fmt;

use super::convention::Convention;
use super::problem::{ConventionProblem, GlobalProblem, LaunchProblem, PrototypeProblem, ReturnProblem, joined};
use crate::diagnostic::{Diagnose, Diagnostic, DiagnosticKind, ErrorDetail};
use crate::spec::{SourceLocation, TextPlace};

/// One error in a body.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BodyError {
    /// The requested operation: `load`, `tensor("x")`, ...
    pub operation: String,
    /// The problem with it.
    pub problem: String,
    /// The source location of the operation, as stated with [`Body::set_location`](crate::Body::set_location).
    pub location: Option<SourceLocation>,
    /// The place of the operation in the text of the body; `None` for a body that was written in Rust.
    pub place: Option<Box<TextPlace>>,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "line {}: ", place.line)?;
        }
        write!(f, "{}: {}", self.operation, self.problem)?;
        if let Some(location) = &self.location {
            write!(f, " ({location})")?;
        }
        match &self.place {
            Some(place) => write!(f, "\n{place}"),
            None => Ok(()),
        }
    }
}

/// The error of creating a wrapper from a signature and a kernel.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// Two functions of one module have the same name.
    #[error("function `{name}` is defined twice; give each wrapper of a module a name of its own")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// The kernel's symbol is empty or contains a NUL byte.
    #[error("kernel symbol {symbol:?} of function `{function}` is empty or holds a NUL byte")]
    KernelName {
        /// The function.
        function: String,
        /// The symbol as given.
        symbol: String,
    },
    /// The kernel's symbol is reserved for something else.
    #[error(
        "the kernel of function `{function}` can't be the symbol {symbol:?}, which is {meaning}; give the kernel \
         another name"
    )]
    ReservedSymbol {
        /// The function.
        function: String,
        /// The kernel's symbol.
        symbol: String,
        /// The purpose for which such names are reserved.
        meaning: String,
    },
    /// The launch of a kernel doesn't fit the signature, or an image.
    #[error("the launch of kernel `{kernel}` by function `{function}` {}", joined(problems))]
    Launch {
        /// The function.
        function: String,
        /// The kernel's name in its image.
        kernel: String,
        /// All problems.
        problems: Vec<LaunchProblem>,
    },
    /// The module already uses the kernel's symbol for something else.
    #[error("the kernel of function `{function}` is the symbol `{symbol}`, but the module already has it as {found}")]
    SymbolConflict {
        /// The function.
        function: String,
        /// The kernel's symbol.
        symbol: String,
        /// The module's existing use of the symbol.
        found: String,
    },
    /// The symbols derived from the function's name have another meaning, in a library or in each module.
    #[error("function `{name}` can't have that name: the symbol `{symbol}` means something else; give it another name")]
    ReservedName {
        /// The name.
        name: String,
        /// The conflicting symbol.
        symbol: String,
    },
    /// A function of a library can't be registered as that global function.
    #[error("function `{function}` can't be the global function {global:?}: {problem}")]
    Global {
        /// The function.
        function: String,
        /// The name of the global function.
        global: String,
        /// The reason.
        problem: GlobalProblem,
    },
    /// The text of host functions can't state a kernel.
    #[error("the kernel of function `{function}` is {what}, but the text of host functions can't state it")]
    NoText {
        /// The function.
        function: String,
        /// The kernel.
        what: &'static str,
    },
    /// A kernel that exists only in this process can't be in a file.
    #[error(
        "the kernel of function `{function}` is an address of this process, which means nothing in a file; name it by \
         its symbol, and link it in"
    )]
    AddressInFile {
        /// The function.
        function: String,
    },
    /// An address of this process can't define a symbol in a file.
    #[error(
        "the kernel of function `{function}` comes with an address of `{symbol}` in this process, which means nothing \
         in a file; leave it out, and link what defines the symbol"
    )]
    SymbolInFile {
        /// The function.
        function: String,
        /// The symbol.
        symbol: String,
    },
    /// A kernel's own code can't be put into an object, or into the caller's module.
    #[error(
        "the kernel of function `{function}` comes with its {code}, which is linked into a running process alone; name \
         the kernel by its symbol `{symbol}`, and give the {code} to the linker"
    )]
    CodeForTheLinker {
        /// The function.
        function: String,
        /// The kind of code: an object, an archive, LLVM's IR or bitcode.
        code: &'static str,
        /// The kernel's symbol.
        symbol: String,
    },
    /// Objects beside a kernel can't be put into an object, or into the caller's module.
    #[error(
        "the kernel of function `{function}` comes with objects, which are linked into a running process alone; leave \
         them out, and give them to the linker"
    )]
    ObjectsForTheLinker {
        /// The function.
        function: String,
    },
    /// The kernel in the caller's module has another prototype than the signature, convention and result require.
    #[error("the kernel `{kernel}` of function `{function}` {problem}; its prototype is `{prototype}`")]
    Prototype {
        /// The function.
        function: String,
        /// The kernel's name in the module.
        kernel: String,
        /// The difference.
        problem: Box<PrototypeProblem>,
        /// The prototype in C.
        prototype: String,
    },
    /// The prefix of a system library isn't valid at the start of symbols.
    #[error("expected a prefix of letters, digits, `_`, `.` and `$` that doesn't begin with a digit, got {prefix:?}")]
    Prefix {
        /// The prefix as given.
        prefix: String,
    },
    /// The module's messages exceed what its tables can address.
    #[error(
        "module too large: error messages exceed {max} bytes at function `{function}`; split it into several modules"
    )]
    TooManyMessages {
        /// The function that didn't fit.
        function: String,
        /// The limit.
        max: u32,
    },
    /// The wrapper would need too much of its caller's stack.
    #[error(
        "the wrapper of function `{function}` needs {bytes} bytes of stack, and may use {max}; most of them are for {}",
        shares(.largest)
    )]
    TooLarge {
        /// The function.
        function: String,
        /// The stack that it needs, in bytes.
        bytes: u32,
        /// The limit.
        max: u32,
        /// The parts that need the most, with sizes in bytes: the largest first, at most three.
        largest: Vec<(&'static str, u32)>,
    },
    /// The kernel's convention can't pass a part of the signature.
    #[error("the kernel of function `{function}` can't be called by the convention {convention}: {problem}")]
    Convention {
        /// The function.
        function: String,
        /// The convention.
        convention: Convention,
        /// The problem.
        problem: ConventionProblem,
    },
    /// The kernel is the address NULL.
    #[error("the kernel of function `{function}` is at address NULL")]
    NullAddress {
        /// The function.
        function: String,
    },
    /// The kernel isn't native, but a convention or C result was stated for it.
    #[error(
        "the kernel of function `{function}` is {kernel}, and `{method}` is for native kernels, which are symbols or \
         addresses; leave it out"
    )]
    NotNative {
        /// The function.
        function: String,
        /// The kind of kernel: `a body` or `check-only`.
        kernel: &'static str,
        /// The method of [`Kernel`](super::Kernel) that was called: `convention` or `returns`.
        method: &'static str,
    },
    /// The kernel's C result and the signature's result don't match.
    #[error("the kernel of function `{function}` {problem}")]
    KernelReturn {
        /// The function.
        function: String,
        /// The problem.
        problem: ReturnProblem,
    },
    /// A bug of this crate: a look-up that can't fail has failed.
    #[error("lowering of function `{function}` lacks {missing}; this is a bug of tvm-ffi-codegen")]
    Internal {
        /// The function.
        function: String,
        /// The purpose of the failed look-up.
        missing: String,
    },
    /// The body has errors; this lists all of them.
    #[error("the body of function `{function}` has errors:{}", list(.errors))]
    Body {
        /// The function.
        function: String,
        /// The errors, at least one.
        errors: Vec<BodyError>,
    },
}

fn shares(largest: &[(&'static str, u32)]) -> String {
    let shares: Vec<_> = largest.iter().map(|(what, bytes)| format!("{what} ({bytes})")).collect();
    shares.join(", ")
}

/// The errors of several functions as one string, at least a line for each.
pub(crate) fn lines(errors: &[LowerError]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.join("\n")
}

fn list(errors: &[BodyError]) -> String {
    errors.iter().map(|m| format!("\n  {m}")).collect()
}

/// The parts of problems in a function.
fn of_problems<P: Diagnose>(function: &str, problems: &[P]) -> Vec<ErrorDetail> {
    let parts = problems.iter().flat_map(|problem| problem.diagnostic().errors);
    parts.map(|part| ErrorDetail { path: Some(function.to_owned()), ..part }).collect()
}

impl Diagnose for LowerError {
    fn diagnostic(&self) -> Diagnostic {
        diagnostic_of([self], self)
    }
}

/// The parts of an error that represents several: each error of a body, a launch or stated arguments is listed
/// separately.
pub(crate) fn diagnostic_of<'e>(
    errors: impl IntoIterator<Item = &'e LowerError>,
    error: &dyn std::error::Error,
) -> Diagnostic {
    let of = |function: &String, message: String| ErrorDetail::new(message, Some(function.clone()));
    let parts = |error: &LowerError| -> Vec<ErrorDetail> {
        match error {
            LowerError::Launch { function, problems, .. } => of_problems(function, problems),
            LowerError::Convention { function, problem: ConventionProblem::Args(problems), .. } => {
                of_problems(function, problems)
            }
            LowerError::Body { function, errors } => {
                let located = |error: &BodyError| ErrorDetail {
                    span: error.place.as_ref().map(|place| place.span.clone()),
                    line: error.place.as_ref().map(|place| place.line),
                    column: error.place.as_ref().map(|place| place.column),
                    ..of(function, error.to_string())
                };
                errors.iter().map(located).collect()
            }
            LowerError::Prototype { problem, .. } => {
                let (expected, got) = problem.mismatch().unzip();
                vec![ErrorDetail { expected, got, ..ErrorDetail::new(error.to_string(), None) }]
            }
            _ => vec![ErrorDetail::new(error.to_string(), None)],
        }
    };
    Diagnostic::with_errors(DiagnosticKind::Kernel, error, errors.into_iter().flat_map(parts))
}
