//! Blocks of memory for the contents of containers, which C++ code frees and replaces.
//!
//! Upstream's C++ code that makes a container grow frees the old block with the container's `data_deleter`, takes a new one from
//! `operator new`, and leaves the deleter of a list as it is. Blocks therefore come from `malloc`, which `operator new` uses too: either
//! side frees what the other took.
//! No header section: `data_deleter` of `TVMFFISeqCell` says how a block is freed.

use std::alloc::{Layout, handle_alloc_error};
use std::ffi::c_void;
use std::ptr::NonNull;

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn free(block: *mut c_void);
}

/// A block of `size` bytes, aligned for any scalar; `None` when there is no memory. The size must not be zero.
pub(super) fn allocate(size: usize) -> Option<NonNull<u8>> {
    isize::try_from(size).ok()?;
    // SAFETY: `malloc` may be called with any size.
    NonNull::new(unsafe { malloc(size) }.cast())
}

/// The deleter of blocks that [`allocate`] gave; NULL is no block.
pub(super) unsafe extern "C" fn free_block(block: *mut c_void) {
    // SAFETY: a deleter is called once, with the block that it belongs to.
    unsafe { free(block) };
}

/// Ends the process, as Rust's collections do when there is no memory.
pub(super) fn out_of_memory(size: usize) -> ! {
    let size = size.min(isize::MAX as usize - 16);
    handle_alloc_error(Layout::from_size_align(size, 16).unwrap_or(Layout::new::<u128>()))
}

/// A block that its container doesn't use any more. Dropping it frees it by its own deleter, which may be anybody's code.
pub(super) struct OldBlock {
    pub(super) data: *mut c_void,
    pub(super) deleter: Option<unsafe extern "C" fn(*mut c_void)>,
}

impl Drop for OldBlock {
    fn drop(&mut self) {
        if let Some(deleter) = self.deleter.filter(|_| !self.data.is_null()) {
            // SAFETY: the container gave the block up, whose values moved out before.
            unsafe { deleter(self.data) };
        }
    }
}
