//! The choice of a backend.

use super::codegen::Codegen;
#[cfg(feature = "cranelift")]
use super::cranelift;
#[cfg(feature = "_llvm")]
use super::llvm;
use crate::names::{self, UnknownName};

/// The code generator. Which variants exist depends on the crate's features.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Backend {
    /// Cranelift: compiles a wrapper in a fraction of a millisecond.
    #[cfg(feature = "cranelift")]
    Cranelift,
    /// LLVM: compiles in milliseconds, and vectorises bodies.
    #[cfg(feature = "_llvm")]
    Llvm,
}

impl Backend {
    /// The backends that the crate's features enable.
    pub const ALL: &[Backend] = &[
        #[cfg(feature = "cranelift")]
        Backend::Cranelift,
        #[cfg(feature = "_llvm")]
        Backend::Llvm,
    ];

    /// The backend's name on command lines: `cranelift` or `llvm`.
    pub const fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "cranelift")]
            Backend::Cranelift => "cranelift",
            #[cfg(feature = "_llvm")]
            Backend::Llvm => "llvm",
        }
    }

    /// The backend's code generator. The library chooses between backends only here; the engine's loaders, which are a
    /// layer above, make their own choice.
    pub(crate) fn codegen(self) -> &'static dyn Codegen {
        match self {
            #[cfg(feature = "cranelift")]
            Backend::Cranelift => &cranelift::Cranelift,
            #[cfg(feature = "_llvm")]
            Backend::Llvm => &llvm::Llvm,
        }
    }
}

impl std::fmt::Display for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Default for Backend {
    /// Cranelift if it is enabled, else LLVM.
    #[allow(unreachable_code)] // the features decide which line is the last
    fn default() -> Self {
        #[cfg(feature = "cranelift")]
        return Backend::Cranelift;
        #[cfg(feature = "_llvm")]
        Backend::Llvm
    }
}

impl std::str::FromStr for Backend {
    type Err = UnknownName;

    /// Parses a [`Backend::name`] of an enabled backend.
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        names::find(text, Backend::ALL, Backend::name).map_err(|error| {
            let expected = format!("a backend that this build has ({})", error.expected);
            UnknownName { expected, ..error }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_have_names() {
        for &backend in Backend::ALL {
            assert_eq!(backend.to_string().parse(), Ok(backend));
        }
        let error = "gcc".parse::<Backend>().map_err(|error| error.to_string());
        let names: Vec<&str> = Backend::ALL.iter().map(|backend| backend.name()).collect();
        let expected = format!("expected a backend that this build has ({}), got `gcc`", names.join(" or "));
        assert_eq!(error, Err(expected));
    }
}
