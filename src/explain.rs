//! What becomes of a signature at each stage: a header for its kernel, the IR, a backend's own IR, the assembly. For people, not
//! programs.

use std::fmt;
use std::iter;
use std::str::FromStr;

use crate::backend::{Backend, CodegenError, Listing, OptLevel};
use crate::ir;
use crate::lower::{self, Kernel, LowerError, Routines};
use crate::spec::Signature;

/// What to show.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Stage {
    /// A C header for a native kernel of the signature; for one that is no native kernel, that of one in its place. It is
    /// the same for all backends, and a stage of none.
    Header,
    /// The host IR, before any backend.
    Ir,
    /// Cranelift's IR.
    Clif,
    /// LLVM's IR after its passes.
    Llvm,
    /// The machine code as text.
    Asm,
}

impl Stage {
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
            Stage::Header | Stage::Ir => None,
            Stage::Clif => Some(Listing::Clif),
            Stage::Llvm => Some(Listing::Llvm),
            Stage::Asm => Some(Listing::Asm),
        }
    }
}

impl FromStr for Stage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "header" => Ok(Stage::Header),
            "ir" => Ok(Stage::Ir),
            "clif" => Ok(Stage::Clif),
            "llvm" => Ok(Stage::Llvm),
            "asm" => Ok(Stage::Asm),
            other => Err(format!("expected header, ir, clif, llvm or asm, got `{other}`")),
        }
    }
}

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExplainError {
    /// The kernel doesn't fit the signature, or a body has mistakes.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The backend can't compile the wrapper.
    #[error(transparent)]
    Codegen(#[from] CodegenError),
    /// The stage isn't one of that backend.
    #[error("{stage} is not a stage of {backend}")]
    NoSuchStage {
        /// What was asked for.
        stage: Stage,
        /// Of which backend.
        backend: Backend,
    },
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Header => "a C header",
            Stage::Ir => "the IR",
            Stage::Clif => "CLIF",
            Stage::Llvm => "LLVM IR",
            Stage::Asm => "assembly",
        })
    }
}

/// Shows one stage of a wrapper, compiled for this machine as an [`Engine`](crate::Engine) would.
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
    let module = lower::lower(signature, kernel, Routines::Import)?;
    let Some(listing) = stage.listing() else { return Ok(module.to_string()) };
    if !backend.codegen().listings().contains(&listing) {
        return Err(ExplainError::NoSuchStage { stage, backend });
    }
    let module = ir::verify(module).map_err(CodegenError::from)?;
    Ok(backend.codegen().listing(&module, listing, level)?)
}
