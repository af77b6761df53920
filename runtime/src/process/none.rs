//! Systems without a loader: nobody else can be there.

use std::ffi::{CStr, c_void};

use super::Runtime;

pub(crate) fn runtimes() -> Vec<Runtime> {
    Vec::new()
}

pub(super) fn global_runtime() -> Option<Runtime> {
    None
}

/// The address of its mark, NULL for none.
pub(super) fn global_mark() -> *mut c_void {
    std::ptr::null_mut()
}

pub(super) fn own_base() -> usize {
    0
}

/// The file that has this code.
#[cfg(not(feature = "external"))]
pub(super) fn own_file() -> String {
    "this program".to_owned()
}

/// The file that has an address, if it isn't this code's: there is one file.
#[cfg(not(feature = "external"))]
pub(super) fn elsewhere(_address: *const c_void) -> Option<String> {
    None
}

pub(crate) fn changes() -> Option<u64> {
    Some(0)
}

#[cfg(feature = "external")]
pub(crate) fn open(_file: &str) -> Result<Runtime, String> {
    Err("this system loads no libraries".to_owned())
}

pub(super) fn symbol(_handle: usize, _name: &CStr) -> *mut c_void {
    std::ptr::null_mut()
}
