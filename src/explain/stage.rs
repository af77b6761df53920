//! Stages and their names.

use std::fmt;
use std::iter;
use std::str::FromStr;

use crate::backend::{Backend, Listing};
use crate::names::{self, UnknownName};

/// A stage on the way from a signature to machine code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Stage {
    /// A C header for a native kernel of the signature. Other kernels get the header that a native kernel would have.
    /// It doesn't depend on the backend and isn't a stage of any.
    Header,
    /// The driver calls of a [launch](crate::Kernel::launch), or of each launch in a [body](crate::Kernel::body), in
    /// order. They don't depend on the backend and aren't a stage of any.
    Launch,
    /// The [text](crate::HostProgram) of the function with its body or kernel. It doesn't depend on the backend and
    /// isn't a stage of any.
    Body,
    /// The host IR, before any backend.
    Ir,
    /// Cranelift's IR.
    Clif,
    /// LLVM's IR after its passes.
    Llvm,
    /// The machine code as assembly.
    Asm,
    /// All of them [side by side](super::side_by_side()), as [a page](super::SideBySide::to_html). It is available
    /// for every backend, but isn't a stage of any.
    Html,
}

impl Stage {
    /// Every stage of every backend, and the listings that don't depend on the backend.
    pub const ALL: &'static [Stage] =
        &[Stage::Header, Stage::Launch, Stage::Body, Stage::Ir, Stage::Clif, Stage::Llvm, Stage::Asm, Stage::Html];

    /// The stage's name on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Header => "header",
            Stage::Launch => "launch",
            Stage::Body => "body",
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

    /// The backend's listing for the stage, if it is a stage of a backend.
    pub(super) fn listing(self) -> Option<Listing> {
        match self {
            Stage::Header | Stage::Launch | Stage::Body | Stage::Ir | Stage::Html => None,
            Stage::Clif => Some(Listing::Clif),
            Stage::Llvm => Some(Listing::Llvm),
            Stage::Asm => Some(Listing::Asm),
        }
    }
}

impl FromStr for Stage {
    type Err = UnknownName;

    /// Parses [`Stage::name`].
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        names::find(text, Self::ALL, Self::name)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
