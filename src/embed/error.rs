//! The error of embedding wrappers in a caller's module.

use crate::backend::CodegenError;
use crate::diagnostic::{Diagnose, Diagnostic, UndefinedSymbol};
use crate::lower::{LowerError, diagnostic_of};
use crate::spec::SignatureError;

/// The error of adding a wrapper.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// The module is for a machine that wrappers don't run on.
    #[error("wrappers can't be added to a module for `{target}`: {problem}")]
    Machine {
        /// The machine, as the module states it.
        target: String,
        /// The reason, and a workaround.
        problem: String,
    },
    /// A module with wrappers is for another machine than the host.
    #[error("a module for `{target}` can't run in this process: {problem}")]
    OtherMachine {
        /// The machine, as the module states it.
        target: String,
        /// The difference.
        problem: HostProblem,
    },
    /// Errors in the functions: kernels that don't fit their signatures, or bodies with errors. All that were found,
    /// in the order of the functions.
    #[error("{}", crate::lower::lines(.0))]
    Functions(Vec<LowerError>),
    /// The types of a C function aren't those of a signature.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// The module refers to symbols that have no address; all known ones are listed.
    #[error(
        "undefined symbol{s}: {list}; {advice}",
        s = if symbols.len() == 1 { "" } else { "s" },
        list = symbols.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    )]
    Undefined {
        /// The symbols, with the functions that call them if these are known.
        symbols: Vec<UndefinedSymbol>,
        /// How to give symbols their addresses.
        advice: &'static str,
    },
    /// The backend can't compile it, or the module has another item with that name, prototype or type.
    #[error(transparent)]
    Codegen(#[from] CodegenError),
    /// The code can't be loaded.
    #[error(transparent)]
    Load(#[from] crate::engine::EngineError),
}

/// How the machine of a module and the host differ.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostProblem {
    /// The host has another architecture or object format.
    #[error("this machine is `{host}`")]
    OtherHost {
        /// The host's target triple.
        host: String,
    },
    /// The host's functions have another calling convention.
    #[error("its functions are called by `{module}`, and those of this machine, `{host}`, by `{expected}`")]
    OtherConvention {
        /// The calling convention of the module's target.
        module: String,
        /// The host's target triple.
        host: String,
        /// The host's calling convention.
        expected: String,
    },
    /// The backend can't generate code for the host.
    #[error("Cranelift has no code generator for this machine")]
    NoCodeGenerator,
    /// The module uses features that the CPU doesn't have.
    #[error("this CPU lacks {}", features.iter().map(|feature| format!("`{feature}`")).collect::<Vec<_>>().join(", "))]
    MissingFeatures {
        /// The features, as the backend names them.
        features: Vec<String>,
    },
}

impl From<LowerError> for EmbedError {
    fn from(error: LowerError) -> Self {
        EmbedError::Functions(vec![error])
    }
}

/// The error for a function that should have been defined.
pub(super) fn undefined(symbol: &str) -> EmbedError {
    CodegenError::internal(format!("{symbol} was not defined")).into()
}

impl Diagnose for EmbedError {
    fn diagnostic(&self) -> Diagnostic {
        match self {
            EmbedError::Machine { target, .. } | EmbedError::OtherMachine { target, .. } => {
                Diagnostic::of_target(target, self)
            }
            EmbedError::Functions(errors) => diagnostic_of(errors, self),
            EmbedError::Undefined { symbols, .. } => Diagnostic::undefined(self, symbols.iter().cloned()),
            EmbedError::Signature(error) => error.diagnostic(),
            EmbedError::Codegen(error) => error.diagnostic(),
            EmbedError::Load(error) => error.diagnostic(),
        }
    }
}
