//! What can go wrong when code is loaded.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

/// The end of the advice about missing symbols.
const SEARCH: &str = if cfg!(all(target_env = "musl", target_feature = "crt-static")) {
    "; `search_process()` finds nothing in an executable that is statically linked with musl"
} else {
    ", or let `search_process()` find what this process exports"
};

/// A missing symbol, with the functions that call it.
fn with_callers(name: &str, callers: &BTreeMap<String, BTreeSet<String>>) -> String {
    match callers.get(name) {
        None => format!("`{name}`"),
        Some(callers) => {
            let callers: Vec<_> = callers.iter().map(|caller| format!("`{caller}`")).collect();
            format!("`{name}` (called by {})", callers.join(", "))
        }
    }
}

/// An error of the engine.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EngineError {
    /// Symbols that the code refers to, but nobody has: all of them.
    #[error(
        "unresolved symbol{s}: {list}; give each an address with `symbol(name, address)`, add the runtime's table \
         with `symbols(...)`{SEARCH}",
        s = if names.len() == 1 { "" } else { "s" },
        list = names.iter().map(|name| with_callers(name, callers)).collect::<Vec<_>>().join(", ")
    )]
    Unresolved {
        /// The names, in the order of the module's imports.
        names: Vec<String>,
        /// Of the names that bodies call as functions by their symbols: the functions whose bodies do.
        callers: BTreeMap<String, BTreeSet<String>>,
    },
    /// The kernel doesn't fit the signature, or a body has mistakes.
    #[error(transparent)]
    Lower(#[from] crate::lower::LowerError),
    /// A function of the bundled runtime was asked of an engine that is bound to another one.
    #[error("this engine is bound to a foreign runtime; use `compile_code` and make the function with that runtime")]
    ForeignRuntime,
    /// There is no runtime for the engine's functions: with the feature `external-runtime`, where the process has none; without it, where
    /// another runtime has taken the place of the bundled one's C symbols.
    #[error("{message}")]
    NoRuntime {
        /// What the runtime says.
        message: String,
    },
    /// The backend can't compile the module.
    #[error(transparent)]
    Codegen(#[from] crate::backend::CodegenError),
    /// LLVM's linker can't load what LLVM made: out of memory, as a rule.
    #[cfg(feature = "_llvm")]
    #[error("can't load the code: {message}")]
    Link {
        /// What LLVM says.
        message: String,
    },
    /// The module has what only an object file can have.
    #[error("{what} can't be loaded by a JIT, only put into an object file")]
    OnlyInObjects {
        /// What it is.
        what: String,
    },
    /// An environment variable has a value that means nothing.
    #[error("the environment variable {name} is `{value}`; it may be {expected}")]
    Environment {
        /// The variable.
        name: &'static str,
        /// The value.
        value: String,
        /// The values that it may have.
        expected: &'static str,
    },
    /// A file for a profiler can't be written.
    #[error("can't write `{}`", path.display())]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The system gives no memory for code.
    #[error("can't get {size} bytes of executable memory")]
    Memory {
        /// How much was asked for.
        size: usize,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
}

impl EngineError {
    /// A mistake of this library.
    #[cfg(feature = "_engine")] // without a backend nobody loads code
    pub(super) fn internal(text: impl Into<String>) -> Self {
        EngineError::Codegen(crate::backend::CodegenError::internal(text))
    }
}
