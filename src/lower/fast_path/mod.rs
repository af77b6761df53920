//! The fast path of values that arrive as `TVMFFIAny`s: conditions that accept the values which nearly always come, and the values that are
//! inside, as a kernel takes them. Each condition leads to the slow path where it doesn't hold.
//!
//! The files stand on one another: `state` ← `checks` ← `dims` ← `context` ← `scalar`, `tensor` ← `args`.

mod args;
mod checks;
mod context;
mod dims;
mod scalar;
mod state;
mod tensor;

pub(super) use args::lower;
pub(super) use checks::Checks;
pub(super) use context::Context;
pub(super) use dims::Dims;
pub(super) use state::{SeenDevices, device_parts};
