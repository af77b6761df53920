//! The stages of a signature's way to machine code as text: a header for its kernel, the sequence of its launch, the IR, a backend's own IR, the assembly; and
//! all of them side by side, also as a page in HTML. For people, not programs.
//!
//! The files stand on one another: `arguments` ← `side_by_side` ← `page`.

mod arguments;
mod page;
mod side_by_side;

use std::fmt;
use std::iter;
use std::str::FromStr;

use crate::backend::{Backend, CodegenError, Listing, OptLevel};
use crate::ir;
use crate::lower::{self, Kernel, LowerError, RuntimeHelpers};
use crate::names::{self, UnknownName};
use crate::spec::Signature;

pub use side_by_side::{Column, Line, Panel, SideBySide, side_by_side};

/// A stage on the way from a signature to machine code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Stage {
    /// A C header for a native kernel of the signature; for one that is no native kernel, that of one in its place. It is
    /// the same for all backends, and a stage of none.
    Header,
    /// The calls of a device's driver that a [launch](Kernel::launch), or each of those of a [body](Kernel::body), is made of, in order. It is the same for all
    /// backends, and a stage of none.
    Launch,
    /// The host IR, before any backend.
    Ir,
    /// Cranelift's IR.
    Clif,
    /// LLVM's IR after its passes.
    Llvm,
    /// The machine code as text.
    Asm,
    /// All of them [side by side](side_by_side()), as [a page](SideBySide::to_html). Every backend has one, and it is a stage of none.
    Html,
}

impl Stage {
    /// Every stage of every backend, and the texts that are the same for all of them.
    pub const ALL: &'static [Stage] =
        &[Stage::Header, Stage::Launch, Stage::Ir, Stage::Clif, Stage::Llvm, Stage::Asm, Stage::Html];

    /// The stage's name on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Header => "header",
            Stage::Launch => "launch",
            Stage::Ir => "ir",
            Stage::Clif => "clif",
            Stage::Llvm => "llvm",
            Stage::Asm => "asm",
            Stage::Html => "html",
        }
    }

    /// The stages of a backend, in order.
    pub fn of(backend: Backend) -> impl Iterator<Item = Stage> {
        iter::once(Stage::Ir).chain(backend.codegen().listings().iter().map(|listing| match listing {
            Listing::Clif => Stage::Clif,
            Listing::Llvm => Stage::Llvm,
            Listing::Asm => Stage::Asm,
        }))
    }

    /// The backend's text that the stage is, where it is a backend's.
    fn listing(self) -> Option<Listing> {
        match self {
            Stage::Header | Stage::Launch | Stage::Ir | Stage::Html => None,
            Stage::Clif => Some(Listing::Clif),
            Stage::Llvm => Some(Listing::Llvm),
            Stage::Asm => Some(Listing::Asm),
        }
    }
}

impl FromStr for Stage {
    type Err = UnknownName;

    /// Reads [`Stage::name`].
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        names::find(text, Self::ALL, Self::name)
    }
}

/// An error of [`explain`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExplainError {
    /// The kernel doesn't fit the signature, or a body has mistakes.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The backend can't compile the wrapper.
    #[error(transparent)]
    Codegen(#[from] CodegenError),
    /// The stage is [`Stage::Launch`], and the kernel neither is a launch nor makes any.
    #[error("`{function}` launches nothing")]
    NoLaunch {
        /// The function's name.
        function: String,
    },
    /// The stage isn't one of that backend.
    #[error("`{stage}` is not a stage of the backend {backend}")]
    NoSuchStage {
        /// The stage that was asked for.
        stage: Stage,
        /// The backend that doesn't have it.
        backend: Backend,
    },
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text of one stage of a wrapper, compiled for this machine as an [`Engine`](crate::Engine) would.
///
/// # Errors
/// As [`Engine::compile`](crate::Engine::compile), or the backend has no such stage.
pub fn explain(
    signature: &Signature,
    kernel: &Kernel,
    stage: Stage,
    backend: Backend,
    level: OptLevel,
) -> Result<String, ExplainError> {
    if stage == Stage::Header {
        return Ok(kernel.header(signature)?);
    }
    if stage == Stage::Launch {
        let no_launch = || ExplainError::NoLaunch { function: signature.name().to_owned() };
        return lower::launch_sequence(signature, kernel)?.ok_or_else(no_launch);
    }
    if stage == Stage::Html {
        return Ok(side_by_side(signature, kernel, backend, level)?.to_html());
    }
    let module = lower::lower(signature, kernel, RuntimeHelpers::Import)?;
    let Some(listing) = stage.listing() else { return Ok(module.to_string()) };
    if !backend.codegen().listings().contains(&listing) {
        return Err(ExplainError::NoSuchStage { stage, backend });
    }
    let module = ir::verify(module).map_err(CodegenError::from)?;
    Ok(backend.codegen().listing(&module, listing, level)?)
}
