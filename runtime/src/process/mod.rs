//! The TVM FFI runtimes in this process, found by a C symbol that each exports.
//! No header section: upstream takes it that there is one.

#[cfg(all(unix, not(miri)))]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;
#[cfg(any(miri, not(any(unix, windows))))]
#[path = "none.rs"]
mod system;

#[cfg(feature = "external")]
pub(crate) use system::open;
pub(crate) use system::{changes, runtimes};

use std::ffi::c_void;

/// A function that every runtime has had since 0.1.0.
pub(crate) const MARK: &std::ffi::CStr = c"TVMFFIErrorSetRaised";

/// A runtime whose C symbols can be looked up.
#[derive(Clone, Debug)]
pub(crate) struct Runtime {
    /// The loader's handle, which is never given back.
    #[cfg_attr(not(feature = "external"), expect(dead_code, reason = "an external runtime's functions are looked up"))]
    handle: usize,
    /// The address of [`MARK`].
    pub(crate) mark: usize,
    /// The file that has it, for messages.
    pub(crate) file: String,
    /// Whether libraries that don't name a runtime find this one.
    pub(crate) is_global: bool,
}

impl Runtime {
    /// The address of one of its symbols; NULL where it has none of that name.
    #[cfg(feature = "external")]
    pub(crate) fn symbol(&self, name: &std::ffi::CStr) -> *mut c_void {
        system::symbol(self.handle, name)
    }
}

/// The file of a runtime that others in this process use in place of the one whose [`MARK`] is at `own`.
///
/// Where `own` is the one that libraries find, another's is never reached.
pub(crate) fn another(own: *const c_void) -> Option<String> {
    let found = runtimes();
    if found.iter().any(|runtime| runtime.is_global && runtime.mark == own.addr()) {
        return None;
    }
    found.into_iter().find(|runtime| runtime.mark != own.addr()).map(|runtime| runtime.file)
}
