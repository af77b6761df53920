//! Shows the stages from a signature to machine code: a header for its kernel, the sequence of its launch, the IR, a
//! backend's own IR, and the assembly. It can also show all of them side by side, for example as an HTML page. The
//! output is for people, not for programs.
//!
//! Each file uses the ones before it: `stage`, `error`, `arguments`, `side_by_side`, `page`.

mod arguments;
mod error;
mod page;
mod side_by_side;
mod stage;

use crate::backend::{Backend, CodegenError, OptLevel};
use crate::host_program::HostProgram;
use crate::ir;
use crate::lower::{self, Kernel, RuntimeHelpers};
use crate::spec::Signature;

pub use error::ExplainError;
pub use side_by_side::{Column, Line, Panel, SideBySide, side_by_side};
pub use stage::Stage;

/// The listing of one stage of a wrapper, compiled for the host as an [`Engine`](crate::Engine) would.
///
/// # Errors
/// The same as for [`Engine::compile`](crate::Engine::compile), or the backend doesn't have the stage.
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
    if stage == Stage::Body {
        return Ok(HostProgram::of([(signature, kernel)])?.to_string());
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
