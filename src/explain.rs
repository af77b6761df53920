//! The stages of a signature's way to machine code as text: a header for its kernel, the IR, a backend's own IR, the assembly. For
//! people, not programs.

use std::fmt;
use std::str::FromStr;

use crate::backend::{Backend, OptLevel};
use crate::engine::{EngineError, verified};
use crate::ir;
use crate::lower::{self, Kernel, Routines};
use crate::names::{self, UnknownName};
use crate::spec::Signature;

/// A stage on the way from a signature to machine code.
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
    /// Every stage of every backend.
    pub const ALL: &'static [Stage] = &[Stage::Header, Stage::Ir, Stage::Clif, Stage::Llvm, Stage::Asm];

    /// The stage's name on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Header => "header",
            Stage::Ir => "ir",
            Stage::Clif => "clif",
            Stage::Llvm => "llvm",
            Stage::Asm => "asm",
        }
    }

    /// The stages of a backend, in order.
    pub const fn of(backend: Backend) -> &'static [Stage] {
        match backend {
            #[cfg(feature = "cranelift")]
            Backend::Cranelift => &[Stage::Ir, Stage::Clif, Stage::Asm],
            #[cfg(feature = "_llvm")]
            Backend::Llvm => &[Stage::Ir, Stage::Llvm, Stage::Asm],
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
    /// The kernel doesn't fit, or the backend fails.
    #[error(transparent)]
    Engine(#[from] EngineError),
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
        return Ok(kernel.header(signature).map_err(EngineError::from)?);
    }
    let module = lower::lower(signature, kernel, Routines::Import).map_err(EngineError::from)?;
    if stage == Stage::Ir {
        return Ok(module.to_string());
    }
    let module = verified(module, true)?;
    match backend {
        #[cfg(feature = "cranelift")]
        Backend::Cranelift => cranelift(&module, stage, level),
        #[cfg(feature = "_llvm")]
        Backend::Llvm => llvm(&module, stage, level),
    }
}

#[cfg(feature = "cranelift")]
fn cranelift(module: &ir::VerifiedModule, stage: Stage, opt_level: OptLevel) -> Result<String, ExplainError> {
    use crate::backend::cranelift::{ByLoops, Compiler, IsaOptions, Options, host_isa};
    if stage == Stage::Llvm {
        return Err(ExplainError::NoSuchStage { stage, backend: Backend::Cranelift });
    }
    let isas = ByLoops::new(opt_level, &IsaOptions::default(), host_isa).map_err(EngineError::from)?;
    let options = Options { disasm: true, ..Options::default() };
    let compiled = Compiler::new().compile_by_loops(module, &isas, options).map_err(EngineError::from)?;
    let mut out = String::new();
    for function in compiled.functions() {
        // CLIF, an empty line, and the machine code
        let text = function.disasm.as_deref().unwrap_or_default();
        let (clif, asm) = text.split_once("}\n\n").unwrap_or((text, ""));
        match stage {
            Stage::Asm if asm.is_empty() => {}
            Stage::Asm => out.push_str(&format!("{}:\n{asm}\n", function.name)),
            _ if clif.is_empty() => {}
            _ => out.push_str(&format!("{clif}}}\n\n")),
        }
    }
    Ok(out)
}

#[cfg(feature = "_llvm")]
fn llvm(module: &ir::VerifiedModule, stage: Stage, opt_level: OptLevel) -> Result<String, ExplainError> {
    use crate::backend::llvm::{Compiler, Options, Target, TargetOptions};
    if stage == Stage::Clif {
        return Err(ExplainError::NoSuchStage { stage, backend: Backend::Llvm });
    }
    let target = Target::host(&TargetOptions { opt_level, ..TargetOptions::default() }).map_err(EngineError::from)?;
    let compiled = Compiler::new(target)
        .compile(module, Options { llvm_ir: true, asm: true, ..Options::default() })
        .map_err(EngineError::from)?;
    Ok(match stage {
        Stage::Asm => compiled.asm.unwrap_or_default(),
        _ => compiled.llvm_ir.map(|(_, optimised)| optimised).unwrap_or_default(),
    })
}
