//! LLVM's own library: linked, or loaded at first use.

use super::Error;
#[cfg(feature = "llvm22-1-loaded")]
use super::loaded;

/// Loads LLVM if the crate was built to load it at run time (feature `llvm22-1-loaded`); does nothing if LLVM is
/// linked. Every function of this library that needs LLVM calls this itself. A program that calls LLVM directly, with
/// [`inkwell`](crate::crates::inkwell), must call this first, or it is aborted with a message.
///
/// # Errors
/// No LLVM of the version was found; the error lists the files that were tried.
pub fn load() -> Result<(), Error> {
    #[cfg(feature = "llvm22-1-loaded")]
    loaded::load()?;
    Ok(())
}

/// LLVM's version: major, minor and patch.
///
/// # Errors
/// The errors of [`load`].
pub fn version() -> Result<(u32, u32, u32), Error> {
    load()?;
    Ok(inkwell::support::get_llvm_version())
}

/// Whether LLVM has the code generator of an architecture. `name` is its name in LLVM's initialisation functions.
pub(super) fn has_code_generator(name: &str) -> bool {
    #[cfg(feature = "llvm22-1-loaded")]
    return loaded::has(&format!("LLVMInitialize{name}Target"));
    #[cfg(not(feature = "llvm22-1-loaded"))]
    {
        // the name was resolved when LLVM was linked
        let _ = name;
        true
    }
}
