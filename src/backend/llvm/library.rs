//! LLVM's own library: linked, or loaded when it is first used.

use super::Error;
#[cfg(feature = "llvm22-1-loaded")]
use super::loaded;

/// Loads LLVM, where the crate was built to do so while it runs (feature `llvm22-1-loaded`); where it is linked there is nothing to do. Whatever of this
/// library needs LLVM does this itself. A program that calls LLVM directly, by [`inkwell`](crate::crates::inkwell), does it before, or is ended with a message.
///
/// # Errors
/// There is no LLVM of the version, and the error says which files were tried.
pub fn load() -> Result<(), Error> {
    #[cfg(feature = "llvm22-1-loaded")]
    loaded::load()?;
    Ok(())
}

/// LLVM's version: major, minor and patch.
///
/// # Errors
/// As [`load`].
pub fn version() -> Result<(u32, u32, u32), Error> {
    load()?;
    Ok(inkwell::support::get_llvm_version())
}

/// Whether LLVM has the code generator of an architecture, by its name in the functions that initialise it.
pub(super) fn has_code_generator(name: &str) -> bool {
    #[cfg(feature = "llvm22-1-loaded")]
    return loaded::has(&format!("LLVMInitialize{name}Target"));
    #[cfg(not(feature = "llvm22-1-loaded"))]
    {
        // it was linked by its name
        let _ = name;
        true
    }
}
