//! Memory of tensors on the CPU.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::element::Element;
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

impl OwnedMemory {
    /// The memory of a vector, and its address; NULL for no bytes. Elements are `Copy`, so that nothing but memory is to be dropped.
    pub(super) fn from_vec<T: Element>(elements: Vec<T>) -> Result<(Self, *mut u8)> {
        // A vector's memory is the global allocator's, with this layout.
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

/// Copies elements that other threads may write at the same time: each is an old or a new one, and not half of both.
///
/// # Safety
/// `from` must be readable and aligned and `to` writable for `len` elements, which don't overlap; nobody else may use `to`.
pub(super) unsafe fn copy_shared<T: Element>(from: *mut T, to: *mut T, len: usize) {
    macro_rules! copy_as {
        ($number:ty, $atomic:ty) => {
            for i in 0..len {
                // SAFETY: the place lies in the memory that the caller promises, and is aligned for a number of the element's size.
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
