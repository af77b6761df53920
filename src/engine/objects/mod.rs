//! Objects that kernels come with: read, checked, put together, and linked into this process.
//!
//! A [`Unit`] is what is linked together: the objects of one compilation's kernels, and of archives the members that are needed. It knows which symbols
//! others have to define. LLVM's LLJIT links a unit where the engine's backend is LLVM, and [`load`] where it is Cranelift.

mod archive;
#[cfg(all(feature = "cranelift", unix))]
mod layout;
#[cfg(all(feature = "cranelift", unix))]
mod load;
#[cfg(all(feature = "cranelift", unix))]
mod memory;
mod read;
#[cfg(all(feature = "cranelift", unix))]
mod relocation;
mod unit;

use super::code::KeepAlive;

#[cfg(all(feature = "cranelift", unix))]
pub(super) use load::load;
pub(super) use unit::{Input, Unit};

/// Objects in this process.
pub(super) struct LoadedObjects {
    /// The addresses of the kernels' symbols.
    pub(super) symbols: Vec<(String, usize)>,
    /// The owner of the memory.
    pub(super) owner: KeepAlive,
}
