//! Errors while loading code.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use thiserror::Error;

use crate::diagnostic::{Diagnose, Diagnostic, DiagnosticKind, UndefinedSymbol};
use crate::host::HostTextError;
use crate::lower::{LowerError, diagnostic_of};

/// The end of the advice about missing symbols.
const SEARCH: &str = if cfg!(all(target_env = "musl", target_feature = "crt-static")) {
    "; `search_process()` finds nothing in an executable that is statically linked with musl"
} else {
    ", or let its `search_process()` find what this process exports"
};

/// For each symbol, the functions and objects that refer to it.
type Referrers = BTreeMap<String, BTreeSet<String>>;

/// The quoted names of functions.
fn quoted(names: &BTreeSet<String>) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// A missing symbol with the functions that call it, or the parts of objects that refer to it.
fn with_referrers(name: &str, callers: &Referrers, references: &Referrers) -> String {
    let list = |all: &BTreeSet<String>| all.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let called = callers.get(name).map(|callers| format!("called by {}", quoted(callers)));
    let referred = references.get(name).map(|places| format!("referred to by {}", list(places)));
    match called.into_iter().chain(referred).collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => format!("`{name}`"),
        by => format!("`{name}` ({by})"),
    }
}

/// A kernel that its object or archive doesn't define.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct UndefinedKernel {
    /// The kernel's symbol.
    pub symbol: String,
    /// The object or archive in words.
    pub object: String,
    /// The functions that it defines, sorted by name.
    pub defined: Vec<String>,
}

impl fmt::Display for UndefinedKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The maximum number of names in a message.
        const SHOWN: usize = 8;
        let UndefinedKernel { symbol, object, defined } = self;
        let names: Vec<String> = defined.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
        let instead = match defined.len() {
            0 => "no function that others see".to_owned(),
            count if count > SHOWN => format!("{} and {} more", names.join(", "), count - SHOWN),
            _ => names.join(", "),
        };
        write!(f, "undefined symbol `{symbol}`: {object} doesn't define it; it defines {instead}")
    }
}

impl From<LowerError> for EngineError {
    fn from(error: LowerError) -> Self {
        EngineError::Functions(vec![error])
    }
}

/// An error of the engine.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The code refers to undefined symbols; lists all of them.
    #[error(
        "unresolved symbol{s}: {list}; give each an address with the builder's `symbol(name, address)`{SEARCH}",
        s = if names.len() == 1 { "" } else { "s" },
        list = names.iter().map(|name| with_referrers(name, callers, references)).collect::<Vec<_>>().join(", "),
    )]
    Unresolved {
        /// The names, in the order of the module's imports.
        names: Vec<String>,
        /// Maps names to the wrappers and bodies that call them.
        callers: BTreeMap<String, BTreeSet<String>>,
        /// Maps names to the functions and variables in kernels' objects that refer to them, in words.
        references: BTreeMap<String, BTreeSet<String>>,
    },
    /// A kernel's object, archive or LLVM module can't be loaded.
    #[error("can't load {object}: {problem}")]
    Object {
        /// The object in words: its kernel, or the archive member.
        object: String,
        /// The reason.
        problem: String,
    },
    /// The objects of two kernels in one compilation define the same symbol.
    #[error(
        "`{symbol}` is defined twice: by {first}, and by {second}; compile the kernels apart, or make the symbol local"
    )]
    DuplicateSymbol {
        /// The symbol.
        symbol: String,
        /// The one object, in words.
        first: String,
        /// The other object, in words.
        second: String,
    },
    /// Errors in the functions: kernels that don't fit their signatures, or errors in bodies. Lists all errors found,
    /// in the order of the functions.
    #[error("{}", crate::lower::lines(.0))]
    Functions(Vec<LowerError>),
    /// Errors in the keys or rows of a [`Dispatch`](crate::Dispatch).
    #[error(transparent)]
    Dispatch(#[from] HostTextError),
    /// Kernels that their objects don't define; lists all of them.
    #[error("{}", kernels.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    UndefinedKernels {
        /// The kernels.
        kernels: Vec<UndefinedKernel>,
    },
    /// You asked an engine that is bound to a foreign runtime for a function of the bundled runtime.
    #[error("this engine is bound to a foreign runtime; use `compile_code` and make the function with that runtime")]
    ForeignRuntime,
    /// There is no runtime for the engine's functions. With the feature `external-runtime`: the process has none.
    /// Without it: another runtime has replaced the bundled one's C symbols.
    #[error("{message}")]
    NoRuntime {
        /// The runtime's message.
        message: String,
    },
    /// The backend can't compile the module.
    #[error(transparent)]
    Codegen(#[from] crate::backend::CodegenError),
    /// LLVM's linker can't load LLVM's code, usually because it ran out of memory.
    #[cfg(feature = "_llvm")]
    #[error("can't load the code: {message}")]
    Link {
        /// LLVM's message.
        message: String,
    },
    /// The module contains something that only an object file supports.
    #[error("{what} can't be loaded by a JIT, only put into an object file")]
    OnlyInObjects {
        /// The unsupported part, in words.
        what: String,
    },
    /// An environment variable has an invalid value.
    #[error("the environment variable {name} is `{value}`; it may be {expected}")]
    Environment {
        /// The variable.
        name: &'static str,
        /// The value.
        value: String,
        /// The valid values.
        expected: &'static str,
    },
    /// A file for a profiler can't be written.
    #[error("can't write `{}`", path.display())]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The system has no memory for code or for the compilation.
    #[error("can't get {size} bytes of memory for code")]
    Memory {
        /// The requested size in bytes.
        size: usize,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
}

impl EngineError {
    /// A bug of this library.
    #[cfg(feature = "_engine")] // unused without a backend
    pub(crate) fn internal(text: impl Into<String>) -> Self {
        EngineError::Codegen(crate::backend::CodegenError::internal(text))
    }
}

impl Diagnose for EngineError {
    fn diagnostic(&self) -> Diagnostic {
        match self {
            EngineError::Functions(errors) => diagnostic_of(errors, self),
            EngineError::Codegen(error) => error.diagnostic(),
            EngineError::Dispatch(error) => error.diagnostic(),
            EngineError::Unresolved { names, callers, references } => {
                let symbol = |name: &String| {
                    let referring = callers.get(name).into_iter().chain(references.get(name)).flatten();
                    UndefinedSymbol::new(name, referring.cloned())
                };
                Diagnostic::undefined(self, names.iter().map(symbol))
            }
            EngineError::UndefinedKernels { kernels } => {
                let symbol = |kernel: &UndefinedKernel| UndefinedSymbol::new(&kernel.symbol, [kernel.object.clone()]);
                Diagnostic::undefined(self, kernels.iter().map(symbol))
            }
            EngineError::Object { .. } | EngineError::DuplicateSymbol { .. } => {
                Diagnostic::plain(DiagnosticKind::Link, self)
            }
            _ => Diagnostic::plain(DiagnosticKind::Other, self),
        }
    }
}
