//! Libraries of profilers, and their functions.

use std::error::Error;
use std::ffi::{OsStr, c_char, c_int};

use libloading::Library;

/// The functions of a profiler. Ranges of one thread nest.
#[derive(Clone, Copy)]
pub(super) struct Ranges {
    pub push: unsafe extern "C" fn(*const c_char) -> c_int,
    pub pop: unsafe extern "C" fn() -> c_int,
}

/// Opens a profiler's library, which stays open, as a hook may run at any time.
pub(super) fn open(path: &OsStr) -> Result<&'static Library, String> {
    // SAFETY: the user has asked for the profiler, whose constructors may run in any process.
    let library = unsafe { Library::new(path) }.map_err(|error| text_of(&error))?;
    Ok(Box::leak(Box::new(library)))
}

/// The system's own message about a library is the error's source.
pub(super) fn text_of(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}
