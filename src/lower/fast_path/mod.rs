//! The fast path of values that arrive as `TVMFFIAny`s. Its conditions accept the most common values, which it extracts
//! in the form for the kernel. If a condition fails, control goes to the slow path.
//!
//! The files depend on each other in this order: `range` ← `state` ← `checks` ← `dims` ← `context` ← `scalar`, `tensor`
//! ← `args`.

mod args;
mod checks;
mod context;
mod dims;
mod range;
mod scalar;
mod state;
mod tensor;

pub(super) use args::lower;
pub(super) use checks::Checks;
pub(super) use context::Context;
pub(super) use dims::Dims;
pub(super) use state::{SeenDevices, device_parts};
