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
    fn version(&self) -> String;

    /// The texts that the backend gives, in the order in which they are made.
    fn listings(&self) -> &'static [Listing];

    /// A text of [`listings`](Self::listings), for this machine.
    fn listing(&self, module: &VerifiedModule, listing: Listing, level: OptLevel) -> Result<String, CodegenError>;
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
