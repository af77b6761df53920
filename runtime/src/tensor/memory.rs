//! Memory of tensors on the CPU.

use std::alloc::{Layout, alloc_zeroed, dealloc};

use crate::error::{Error, Result, kind, value_error};

/// Alignment in bytes of the memory that this crate allocates, as DLPack asks for.
pub const TENSOR_ALIGNMENT: usize = 256;

/// Memory allocated by this crate, freed when it is dropped.
pub(super) struct OwnedMemory {
    block: *mut u8,
    layout: Layout,
}

impl OwnedMemory {
    /// Zeroed memory of `size` bytes, and the aligned address in it; NULL for no bytes.
    pub(super) fn new(size: usize) -> Result<(Self, *mut u8)> {
        // More than asked for, so that the aligned address is in it: the system gives large zeroed
        // blocks of small alignment without touching them.
        let layout = size
            .checked_add(TENSOR_ALIGNMENT)
            .and_then(|total| Layout::from_size_align(total, 16).ok())
            .ok_or_else(|| value_error("tensor is too large"))?;
        if size == 0 {
            let block = std::ptr::null_mut();
            return Ok((Self { block, layout }, block));
        }
        // SAFETY: the layout's size is not zero.
        let block = unsafe { alloc_zeroed(layout) };
        if block.is_null() {
            return Err(Error::new(kind::MEMORY_ERROR, &format!("cannot allocate {size} bytes for a tensor")));
        }
        let data = block.wrapping_add(block.align_offset(TENSOR_ALIGNMENT));
        Ok((Self { block, layout }, data))
    }
}

impl Drop for OwnedMemory {
    fn drop(&mut self) {
        if !self.block.is_null() {
            // SAFETY: the block was allocated with this layout, and is freed once, here.
            unsafe { dealloc(self.block, self.layout) };
        }
    }
}
