//! Backends: from the [IR](crate::ir) to machine code.
//!
//! A backend takes a [`VerifiedModule`](crate::ir::VerifiedModule) and gives code with relocations. It knows neither
//! signatures nor the rules of the TVM FFI ABI: whatever a wrapper checks or says is in the IR already, so two
//! backends can't differ on it. Each one is also usable alone, to add a wrapper to a module that the caller owns.
//!
//! For backends and experts: all but [`Backend`], [`OptLevel`] and the backends' errors is [outside of semver](crate#stability).

#[cfg(feature = "_engine")]
mod codegen;
#[cfg(feature = "cranelift")]
pub mod cranelift;
#[cfg(feature = "cranelift")]
mod disassembly;
mod error;
#[cfg(feature = "_llvm")]
pub mod llvm;

#[cfg(all(test, feature = "_engine"))]
mod op_tests;

#[cfg(feature = "_engine")]
pub(crate) use codegen::{Codegen, Listing, ObjectOptions, TextLine};
pub use error::CodegenError;

#[cfg(feature = "_engine")]
use crate::ir::LocationRef;
use crate::ir::{FuncDecl, Function, Module};
use crate::names::{self, UnknownName};

/// What symbols of local functions begin with, where a file has them: backtraces leave out functions of such names, by the list of upstream's
/// `backtrace_utils.h`. A wrapper is then one frame, and not one for each of its parts.
#[cfg(any(feature = "cranelift", feature = "_llvm"))]
const LEFT_OUT: &str = "ffi_call_";

/// The symbol that a local function has in an object, or in a module that becomes one.
#[cfg(any(feature = "cranelift", feature = "_llvm"))]
pub(crate) fn local_symbol(name: &str) -> String {
    format!("{LEFT_OUT}{name}")
}

/// The name of the local function that has a symbol; `None` for symbols of others.
#[cfg(any(feature = "cranelift", feature = "_llvm"))]
pub(crate) fn name_of_local(symbol: &str) -> Option<&str> {
    symbol.strip_prefix(LEFT_OUT)
}

/// Where exported functions begin: at a cache line, so that how fast a short one is doesn't depend on what stands before it.
#[cfg(any(feature = "cranelift", feature = "_llvm"))]
const CACHE_LINE: u32 = 64;

/// The reason why targets that are GPUs are refused.
#[cfg(feature = "_engine")]
pub(crate) const ON_GPU: &str = "a GPU runs no wrappers; make them for the host, where a kernel launches the GPU's";

/// Whether a target that Rust has a name for is a GPU.
#[cfg(feature = "_engine")]
fn is_gpu(triple: &target_lexicon::Triple) -> bool {
    use target_lexicon::Architecture;
    matches!(triple.architecture, Architecture::Nvptx64 | Architecture::AmdGcn)
}

#[cfg(feature = "_engine")]
/// Code of one source location.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lines {
    /// Where it begins, in bytes from the function's start.
    pub start: u32,
    /// Where it ends.
    pub end: u32,
    /// The location, one of the module's.
    pub location: LocationRef,
}

/// The code generator. Its variants are those that the crate's features say.
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
    /// The backends that the crate's features say.
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
        f.write_str(self.name())
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
    type Err = UnknownName;

    /// Reads [`Backend::name`], as far as the crate's features have the backend.
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        names::find(text, Backend::ALL, Backend::name).map_err(|error| {
            let expected = format!("a backend that this build has ({})", error.expected);
            UnknownName { expected, ..error }
        })
    }
}

/// The amount of optimisation. Every backend gives these the same meaning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
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

impl std::fmt::Display for OptLevel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for OptLevel {
    type Err = UnknownName;

    /// Reads [`OptLevel::name`].
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        names::find(text, Self::ALL, Self::name)
    }
}

impl OptLevel {
    /// Every level, from the least work to the most.
    pub const ALL: &'static [OptLevel] = &[OptLevel::None, OptLevel::Speed, OptLevel::Full];

    /// The level's name on command lines: `none`, `speed` or `full`.
    pub const fn name(self) -> &'static str {
        match self {
            OptLevel::None => "none",
            OptLevel::Speed => "speed",
            OptLevel::Full => "full",
        }
    }

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
            assert_eq!(backend.to_string().parse(), Ok(backend));
        }
        let error = "gcc".parse::<Backend>().map_err(|error| error.to_string());
        let names: Vec<&str> = Backend::ALL.iter().map(|backend| backend.name()).collect();
        let expected = format!("expected a backend that this build has ({}), got `gcc`", names.join(" or "));
        assert_eq!(error, Err(expected));
        for &level in OptLevel::ALL {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        let error = "3".parse::<OptLevel>().map_err(|error| error.to_string());
        assert_eq!(error, Err("expected none, speed or full, got `3`".to_owned()));
    }
}
