//! Memory of tensors on the CPU.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::element::Element;
use crate::error::{Error, Result, kind, value_error};

/// Alignment in bytes of the memory that this crate allocates, as DLPack asks for.
pub const TENSOR_ALIGNMENT: usize = 256;

/// Bytes that are copied at once.
const WORD: usize = size_of::<u64>();

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

/// Copies elements that other threads may write at the same time: each is an old or a new one, and not half of both.
///
/// # Safety
/// `from` must be readable and aligned and `to` writable for `len` elements, which don't overlap; nobody else may use `to`.
pub(super) unsafe fn copy_shared<T: Element>(from: *mut T, to: *mut T, len: usize) {
    let unit = size_of::<T>();
    // SAFETY: the place lies in the memory that the caller promises, and is aligned for a number of the element's size.
    let copy_one = |i: usize| unsafe {
        let (from, to) = (from.add(i), to.add(i));
        match unit {
            1 => to.cast::<u8>().write(AtomicU8::from_ptr(from.cast()).load(Ordering::Relaxed)),
            2 => to.cast::<u16>().write(AtomicU16::from_ptr(from.cast()).load(Ordering::Relaxed)),
            4 => to.cast::<u32>().write(AtomicU32::from_ptr(from.cast()).load(Ordering::Relaxed)),
            _ => to.cast::<u64>().write(AtomicU64::from_ptr(from.cast()).load(Ordering::Relaxed)),
        }
    };
    // Words of several elements, where the memory is aligned for them.
    let head = (from.cast::<u8>().align_offset(WORD) / unit).min(len);
    let words = (len - head) * unit / WORD;
    (0..head).for_each(copy_one);
    // SAFETY: as above; the head ends where a word begins.
    unsafe {
        let (from, to) = (from.add(head).cast::<u64>(), to.add(head).cast::<u64>());
        for i in 0..words {
            to.add(i).write_unaligned(AtomicU64::from_ptr(from.add(i)).load(Ordering::Relaxed));
        }
    }
    (head + words * WORD / unit..len).for_each(copy_one);
}
