//! The TVM FFI runtimes in this process, found using a C symbol that each exports.
//! No header section: upstream assumes that there is only one.

#[cfg(all(unix, not(miri)))]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;
#[cfg(any(miri, not(any(unix, windows))))]
#[path = "none.rs"]
mod system;

pub(crate) mod beside;

pub(crate) use system::*;

use std::ffi::c_void;

/// A function that every runtime has had since 0.1.0.
#[cfg_attr(
    any(miri, not(any(unix, windows))),
    expect(dead_code, reason = "nothing is looked up where there is no loader")
)]
const MARK: &std::ffi::CStr = c"TVMFFIErrorSetRaised";

/// A runtime that was found. Its C symbols can be looked up.
#[derive(Debug)]
pub(crate) struct Runtime {
    /// The loader's handle. It is never closed.
    handle: usize,
    /// The start address of the file that contains [`MARK`].
    base: usize,
    /// The file, for messages.
    pub(crate) file: String,
}

impl Runtime {
    /// The address of a symbol of this runtime; NULL if it has no symbol of that name.
    pub(crate) fn symbol(&self, name: &std::ffi::CStr) -> *mut c_void {
        system::symbol(self.handle, name)
    }
}
