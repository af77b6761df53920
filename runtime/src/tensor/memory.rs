//! CPU memory for tensors.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::element::Element;
use crate::error::{Result, no_memory_for, value_error};

/// Alignment in bytes of the memory that this crate allocates, as DLPack requires.
pub const TENSOR_ALIGNMENT: usize = 256;

/// Memory that this crate owns and frees on drop.
pub(super) struct OwnedMemory {
    block: *mut u8,
    layout: Layout,
}

impl OwnedMemory {
    /// Allocates `size` zeroed bytes, and returns the aligned address in the block. The address is NULL for zero bytes.
    pub(super) fn new(size: usize) -> Result<(Self, *mut u8)> {
        // Allocates extra bytes so that an aligned address is in the block. The system can provide large zeroed blocks
        // of small alignment without touching their pages.
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
            return Err(no_memory_for(size, "a tensor"));
        }
        let data = block.wrapping_add(block.align_offset(TENSOR_ALIGNMENT));
        Ok((Self { block, layout }, data))
    }
}

impl OwnedMemory {
    /// Takes over a vector's memory, and returns its address; NULL for zero bytes. Elements are `Copy`, so only the
    /// memory has to be freed.
    pub(super) fn from_vec<T: Element>(elements: Vec<T>) -> Result<(Self, *mut u8)> {
        // A vector's memory comes from the global allocator, with this layout.
        let layout = Layout::array::<T>(elements.capacity()).map_err(|_| value_error("tensor is too large"))?;
        let mut elements = std::mem::ManuallyDrop::new(elements);
        let block = if layout.size() == 0 { std::ptr::null_mut() } else { elements.as_mut_ptr().cast::<u8>() };
        Ok((Self { block, layout }, block))
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

/// Copies elements that other threads may write concurrently. Each copied element is either the old or the new value,
/// never a mix of both.
///
/// # Safety
/// `from` must be readable and `to` writable for `len` elements. Both must be aligned and must not overlap, and no
/// other code may use `to`.
pub(super) unsafe fn copy_shared<T: Element>(from: *mut T, to: *mut T, len: usize) {
    macro_rules! copy_as {
        ($number:ty, $atomic:ty) => {
            for i in 0..len {
                // SAFETY: the address is within the memory that the caller promises, and is aligned for a number of the
                // element's size.
                unsafe {
                    let element = <$atomic>::from_ptr(from.cast::<$number>().add(i)).load(Ordering::Relaxed);
                    to.cast::<$number>().add(i).write(element);
                }
            }
        };
    }
    match size_of::<T>() {
        1 => copy_as!(u8, AtomicU8),
        2 => copy_as!(u16, AtomicU16),
        4 => copy_as!(u32, AtomicU32),
        _ => copy_as!(u64, AtomicU64),
    }
}
