//! The interface of a backend to the rest of the library.

use std::num::NonZeroUsize;

use target_lexicon::Triple;

use super::error::CodegenError;
use super::opt_level::OptLevel;
use crate::ir::VerifiedModule;

/// A code generator. It returns bytes and strings. Code that needs the compiler's own types, such as the engine's
/// loaders, uses the backend's module directly.
pub(crate) trait Codegen {
    /// Compiles the module into an object file.
    fn object(&self, module: VerifiedModule, options: &ObjectOptions<'_>) -> Result<Vec<u8>, CodegenError>;

    /// The code generator's version. Other versions may generate different code.
    ///
    /// # Errors
    /// The code generator is loaded lazily and was not found.
    fn version(&self) -> Result<String, CodegenError>;

    /// The listings that the backend can print, in the order in which compilation produces them.
    fn listings(&self) -> &'static [Listing];

    /// Prints one of [`listings`](Self::listings), for this machine.
    fn listing(&self, module: &VerifiedModule, listing: Listing, level: OptLevel) -> Result<String, CodegenError>;

    /// Prints [`listings`](Self::listings) as lines, each with the IR line that it was generated from. `located` is
    /// `module` with the lines of its own listing as source locations. The code printed is that of `module`: where a
    /// function compiles to different code with locations, its lines have no origin.
    fn lines(
        &self,
        module: &VerifiedModule,
        located: &VerifiedModule,
        level: OptLevel,
    ) -> Result<Vec<(Listing, Vec<TextLine>)>, CodegenError>;
}

/// A line of a backend's listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TextLine {
    pub text: String,
    /// The line of the IR's listing that this line was generated from, if the backend reports one.
    pub ir_line: Option<u32>,
}

impl TextLine {
    /// A line without an origin in the IR.
    pub fn plain(text: impl Into<String>) -> Self {
        TextLine { text: text.into(), ir_line: None }
    }
}

/// The target of an object file, and how to generate it.
#[cfg_attr(not(feature = "cranelift"), allow(dead_code))] // LLVM ignores some of the fields
pub(crate) struct ObjectOptions<'a> {
    pub target: &'a Triple,
    pub opt_level: OptLevel,
    /// The minimum CPU, by the backend's name for it.
    pub cpu: Option<&'a str>,
    /// Additional CPU features, by the backend's names.
    pub features: &'a [String],
    pub threads: Option<NonZeroUsize>,
    /// Whether the backend checks its own work, if that is optional.
    pub verifier: bool,
    /// Called with the number of compiled functions and the total, possibly on several threads. A backend that doesn't
    /// count never calls it.
    pub compiled: &'a (dyn Fn(u64, u64) + Sync),
}

/// A listing that a backend produces during compilation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Listing {
    /// Cranelift's IR.
    #[cfg_attr(not(feature = "cranelift"), allow(dead_code))]
    Clif,
    /// LLVM's IR after its passes.
    #[cfg_attr(not(feature = "_llvm"), allow(dead_code))]
    Llvm,
    /// The machine code.
    Asm,
}
