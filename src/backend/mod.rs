//! Backends: from the [IR](crate::ir) to machine code.
//!
//! A backend takes a [`VerifiedModule`](crate::ir::VerifiedModule) and gives code with relocations. It knows neither
//! signatures nor the rules of the TVM FFI ABI: whatever a wrapper checks or says is in the IR already, so two
//! backends can't differ on it. Each one is also usable alone, to add a wrapper to a module that the caller owns.

#[cfg(feature = "_engine")]
mod codegen;
#[cfg(feature = "cranelift")]
pub mod cranelift;
mod error;
#[cfg(feature = "_llvm")]
pub mod llvm;

#[cfg(all(test, feature = "_engine"))]
mod op_tests;

#[cfg(feature = "_engine")]
pub(crate) use codegen::{Codegen, Listing, ObjectOptions};
pub use error::CodegenError;

use crate::ir::{FuncDecl, Function, Module};

/// Where exported functions begin: at a cache line, so that how fast a short one is doesn't depend on what stands before it.
#[cfg(any(feature = "cranelift", feature = "_llvm"))]
const CACHE_LINE: u32 = 64;

/// What makes the code. Its variants are those that the crate's features say.
#[cfg(feature = "_engine")]
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

#[cfg(feature = "_engine")]
impl Backend {
    /// Those that the crate's features say.
    pub const ALL: &[Backend] = &[
        #[cfg(feature = "cranelift")]
        Backend::Cranelift,
        #[cfg(feature = "_llvm")]
        Backend::Llvm,
    ];

    /// The backend's code generator. Here alone the library chooses between backends, but for the engine's loaders, which are above.
    pub(crate) fn codegen(self) -> &'static dyn Codegen {
        match self {
            #[cfg(feature = "cranelift")]
            Backend::Cranelift => &cranelift::Cranelift,
            #[cfg(feature = "_llvm")]
            Backend::Llvm => &llvm::Llvm,
        }
    }
}

#[cfg(feature = "_engine")]
impl std::fmt::Display for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            #[cfg(feature = "cranelift")]
            Backend::Cranelift => "Cranelift",
            #[cfg(feature = "_llvm")]
            Backend::Llvm => "LLVM",
        })
    }
}

#[cfg(feature = "_engine")]
impl Default for Backend {
    /// Cranelift, if it is there.
    #[allow(unreachable_code)] // the features decide which line is the last
    fn default() -> Self {
        #[cfg(feature = "cranelift")]
        return Backend::Cranelift;
        #[cfg(feature = "_llvm")]
        Backend::Llvm
    }
}

#[cfg(feature = "_engine")]
impl std::str::FromStr for Backend {
    type Err = String;

    /// Reads `cranelift` or `llvm`, as far as the crate's features have them.
    fn from_str(text: &str) -> Result<Self, String> {
        let name = |backend: &Backend| backend.to_string().to_lowercase();
        Backend::ALL.iter().copied().find(|backend| name(backend) == text).ok_or_else(|| {
            let known: Vec<_> = Backend::ALL.iter().map(name).collect();
            format!("no backend `{text}` in this build, which has {}", known.join(" and "))
        })
    }
}

/// How much a backend optimises. Every backend gives these the same meaning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OptLevel {
    /// The least time to compile.
    None,
    /// Fast code where time to compile pays: a function without loops, as a wrapper is, gets what such code gains
    /// from; one with a loop, as many a body is, gets what [`Full`](Self::Full) gives.
    #[default]
    Speed,
    /// The fastest code that the backend makes, whatever the module. With LLVM this inlines and vectorises.
    Full,
}

impl std::str::FromStr for OptLevel {
    type Err = String;

    /// Reads `none`, `speed` or `full`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(OptLevel::None),
            "speed" => Ok(OptLevel::Speed),
            "full" => Ok(OptLevel::Full),
            other => Err(format!("expected none, speed or full, got `{other}`")),
        }
    }
}

impl OptLevel {
    /// The level that a module gets: as [`Speed`](Self::Speed) says, code with loops gets everything.
    pub fn for_module(self, module: &Module) -> OptLevel {
        let loops = || module.functions.values().any(Self::gains);
        if self == OptLevel::Speed && loops() { OptLevel::Full } else { self }
    }

    /// Whether a function gains much by being optimised: it loops on its usual path, and has one.
    pub(crate) fn gains(function: &FuncDecl) -> bool {
        !function.cold && function.body.as_ref().is_some_and(Function::has_loop)
    }
}

#[cfg(all(test, feature = "_engine"))]
mod tests {
    use super::*;

    #[test]
    fn backends_and_levels_have_names() {
        for &backend in Backend::ALL {
            assert_eq!(backend.to_string().to_lowercase().parse(), Ok(backend));
        }
        assert!("gcc".parse::<Backend>().is_err_and(|e| e.starts_with("no backend `gcc` in this build")));
        assert_eq!("full".parse(), Ok(OptLevel::Full));
        assert!("3".parse::<OptLevel>().is_err());
    }
}
