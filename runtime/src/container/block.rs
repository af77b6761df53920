//! Memory blocks for the contents of containers. C++ code frees and replaces them too.
//!
//! When upstream's C++ code grows a container, it frees the old block with the container's `data_deleter` and allocates
//! a new one with `operator new`. It leaves a list's deleter unchanged. Blocks therefore come from `malloc`, which
//! `operator new` uses too, so either side can free the other's blocks.
//! No header section: `data_deleter` of `TVMFFISeqCell` specifies how a block is freed.

use std::alloc::{Layout, handle_alloc_error};
use std::ffi::c_void;
use std::ptr::NonNull;

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn free(block: *mut c_void);
}

/// A block of `size` bytes, aligned for any scalar; `None` when out of memory. The size must not be zero.
pub(super) fn allocate(size: usize) -> Option<NonNull<u8>> {
    isize::try_from(size).ok()?;
    // SAFETY: `malloc` may be called with any size.
    NonNull::new(unsafe { malloc(size) }.cast())
}

/// The deleter of blocks from [`allocate`]. NULL is allowed and does nothing.
pub(super) unsafe extern "C" fn free_block(block: *mut c_void) {
    // SAFETY: a deleter is called once, with the block that it belongs to.
    unsafe { free(block) };
}

/// Aborts the process when out of memory, as Rust's collections do.
pub(super) fn out_of_memory(size: usize) -> ! {
    let size = size.min(isize::MAX as usize - 16);
    handle_alloc_error(Layout::from_size_align(size, 16).unwrap_or(Layout::new::<u128>()))
}

/// A block that its container no longer uses. Dropping it calls the block's own deleter, which may be foreign code.
pub(super) struct OldBlock {
    pub(super) data: *mut c_void,
    pub(super) deleter: Option<unsafe extern "C" fn(*mut c_void)>,
}

impl Drop for OldBlock {
    fn drop(&mut self) {
        if let Some(deleter) = self.deleter.filter(|_| !self.data.is_null()) {
            // SAFETY: the container has released the block, and its values have been moved out.
            unsafe { deleter(self.data) };
        }
    }
}
