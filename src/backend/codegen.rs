//! The interface of a backend to the rest of the library.

use std::num::NonZeroUsize;

use target_lexicon::Triple;

use super::{CodegenError, OptLevel};
use crate::ir::VerifiedModule;

/// A code generator. It gives bytes and texts; whoever wants types of its own compiler, such as the engine's loaders, uses the backend's module.
pub(crate) trait Codegen {
    /// An object file.
    fn object(&self, module: VerifiedModule, options: &ObjectOptions<'_>) -> Result<Vec<u8>, CodegenError>;

    /// The version of the code generator, whose code may differ from that of another one.
    ///
    /// # Errors
    /// The code generator is to be loaded, and isn't there.
    fn version(&self) -> Result<String, CodegenError>;

    /// The texts that the backend gives, in the order in which they are made.
    fn listings(&self) -> &'static [Listing];

    /// A text of [`listings`](Self::listings), for this machine.
    fn listing(&self, module: &VerifiedModule, listing: Listing, level: OptLevel) -> Result<String, CodegenError>;

    /// The texts of [`listings`](Self::listings) as lines that know which lines of the IR they were made from. `located` is the module with the lines
    /// of its listing for source locations. Code is that of `module`: a function whose code was another with locations has lines of no origin.
    fn lines(
        &self,
        module: &VerifiedModule,
        located: &VerifiedModule,
        level: OptLevel,
    ) -> Result<Vec<(Listing, Vec<TextLine>)>, CodegenError>;
}

/// A line of a backend's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TextLine {
    pub text: String,
    /// The line of the IR's listing that it was made from, where the backend tells one.
    pub ir_line: Option<u32>,
}

impl TextLine {
    /// A line that was made from none of the IR.
    pub fn plain(text: impl Into<String>) -> Self {
        TextLine { text: text.into(), ir_line: None }
    }
}

/// The target of an object file, and how it is made.
#[cfg_attr(not(feature = "cranelift"), allow(dead_code))] // LLVM has no use for some
pub(crate) struct ObjectOptions<'a> {
    pub target: &'a Triple,
    pub opt_level: OptLevel,
    /// The least CPU, by the backend's name for it.
    pub cpu: Option<&'a str>,
    /// Features that the CPU has besides, by the backend's names.
    pub features: &'a [String],
    pub threads: Option<NonZeroUsize>,
    /// Whether the backend checks its own work, where it has the choice.
    pub verifier: bool,
    /// Told how many functions of how many are compiled, maybe on several threads; never, by a backend that doesn't count.
    pub compiled: &'a (dyn Fn(u64, u64) + Sync),
}

/// A text that a backend makes on its way.
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
