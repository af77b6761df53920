//! For systems without a loader: the process can't have another runtime.

use std::ffi::{CStr, c_void};

use super::Runtime;

pub(crate) fn runtimes() -> Vec<Runtime> {
    Vec::new()
}

pub(crate) fn global_runtime() -> Option<Runtime> {
    None
}

/// The address of the global runtime's [`MARK`](super::MARK); always NULL on this system.
pub(super) fn global_mark() -> *mut c_void {
    std::ptr::null_mut()
}

pub(super) fn own_base() -> usize {
    0
}

/// The file that contains this code.
pub(super) fn own_file() -> String {
    "this program".to_owned()
}

/// The file that contains an address, unless it is this code's. This system has only one file, so always `None`.
pub(super) fn elsewhere(_address: *const c_void) -> Option<String> {
    None
}

pub(crate) fn changes() -> Option<u64> {
    Some(0)
}

#[allow(dead_code, reason = "only an external runtime is opened")]
pub(crate) fn open(_file: &str) -> Result<Runtime, String> {
    Err("this system loads no libraries".to_owned())
}

pub(super) fn symbol(_handle: usize, _name: &CStr) -> *mut c_void {
    std::ptr::null_mut()
}
