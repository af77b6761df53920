//! Kernels' objects: reads, checks and combines them, and links them into this process.
//!
//! A [`Unit`] is linked as a whole: the objects of one compilation's kernels, and the needed members of archives. It
//! lists the symbols that must be defined elsewhere. If the engine's backend is LLVM, LLVM's LLJIT links a unit; if it
//! is Cranelift, [`load`] does.

mod archive;
#[cfg(feature = "_llvm")]
mod for_llvm;
#[cfg(any(all(feature = "cranelift", unix), feature = "_llvm"))]
mod frames;
#[cfg(all(feature = "cranelift", unix))]
mod layout;
#[cfg(all(feature = "cranelift", target_os = "linux"))]
mod library;
#[cfg(all(feature = "cranelift", unix))]
mod load;
mod loaded;
#[cfg(all(feature = "cranelift", unix))]
mod memory;
mod read;
#[cfg(all(feature = "cranelift", unix))]
mod relocation;
mod unit;

#[cfg(all(feature = "cranelift", target_os = "linux"))]
pub(super) use library::{LoadedLibrary, load_library};
#[cfg(all(feature = "cranelift", unix))]
pub(super) use load::load;
pub(super) use loaded::LoadedObjects;
pub(super) use unit::{Input, Unit};
