//! Memory blocks for objects. Each thread keeps some of the blocks that it frees and reuses them for its next objects.
//! No header section: upstream uses C's allocator for this, which takes longer.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;

/// The alignment of blocks, which C's allocator provides anyway. Block sizes are multiples of it.
pub(super) const ALIGN: usize = 16;
/// The size of the largest blocks that a thread keeps.
const LARGEST: usize = 512;
const SIZES: usize = LARGEST / ALIGN;
/// Maximum bytes that a thread keeps in blocks of one size; 64 KiB for all sizes together.
const MOST: usize = 2048;

/// Debug builds free every block immediately, for tools that detect use after free.
const KEEPS: bool = !cfg!(debug_assertions);

/// The contents of a kept block.
struct Spare {
    next: *mut Spare,
    /// The total bytes of the blocks from this one to the end of the list.
    bytes: usize,
}

const _: () = assert!(size_of::<Spare>() <= ALIGN && align_of::<Spare>() <= ALIGN);

/// The kept blocks, in one list per size.
struct Lists([Cell<*mut Spare>; SIZES]);

thread_local! {
    static LISTS: Lists = const { Lists([const { Cell::new(std::ptr::null_mut()) }; SIZES]) };
}

impl Lists {
    /// The list of blocks of `size` bytes; the size must not be zero.
    #[inline]
    fn of(&self, size: usize) -> Option<&Cell<*mut Spare>> {
        self.0.get(size / ALIGN - 1)
    }

    /// Removes and returns a kept block; NULL if there is none.
    #[inline]
    fn take(&self, size: usize) -> *mut u8 {
        let Some(list) = self.of(size) else { return std::ptr::null_mut() };
        let block = list.get();
        if !block.is_null() {
            // SAFETY: the list owns its blocks, and each holds a `Spare`.
            list.set(unsafe { (*block).next });
        }
        block.cast()
    }

    /// Keeps a block, unless the list is full. Returns whether it was kept.
    ///
    /// # Safety
    /// The block must come from [`allocate`] with this size, and must not be used any more.
    #[inline]
    unsafe fn keep(&self, block: *mut u8, size: usize) -> bool {
        let Some(list) = self.of(size) else { return false };
        let next = list.get();
        // SAFETY: as in `take`.
        let bytes = size + if next.is_null() { 0 } else { unsafe { (*next).bytes } };
        if bytes > MOST {
            return false;
        }
        let block = block.cast::<Spare>();
        // SAFETY: the caller owns the block, which has at least this size and alignment.
        unsafe { block.write(Spare { next, bytes }) };
        list.set(block);
        true
    }
}

impl Drop for Lists {
    fn drop(&mut self) {
        for size in (ALIGN..=LARGEST).step_by(ALIGN) {
            loop {
                let block = self.take(size);
                if block.is_null() {
                    break;
                }
                // SAFETY: the list only holds blocks of this size.
                unsafe { give_back(block, size) };
            }
        }
    }
}

/// The block size for a request of `size` bytes; 0 if it overflows.
#[inline]
pub(super) const fn size_of_block(size: usize) -> usize {
    match size.checked_next_multiple_of(ALIGN) {
        Some(0) => ALIGN,
        Some(size) => size,
        None => 0,
    }
}

/// A block of at least `size` bytes and its actual size; NULL when out of memory.
#[inline]
pub(super) fn allocate(size: usize) -> (*mut u8, usize) {
    let size = size_of_block(size);
    if size == 0 {
        return (std::ptr::null_mut(), 0);
    }
    if KEEPS && size <= LARGEST {
        let block = LISTS.try_with(|lists| lists.take(size)).unwrap_or(std::ptr::null_mut());
        if !block.is_null() {
            return (block, size);
        }
    }
    (from_system(size), size)
}

#[inline(never)]
fn from_system(size: usize) -> *mut u8 {
    // SAFETY: the size is not zero.
    Layout::from_size_align(size, ALIGN).map_or(std::ptr::null_mut(), |layout| unsafe { alloc(layout) })
}

/// Frees a block.
///
/// # Safety
/// Block and size must come from the same call of [`allocate`], and the block must not be used any more.
#[inline]
pub(super) unsafe fn free(block: *mut u8, size: usize) {
    // SAFETY: promised by the caller. A terminating thread no longer keeps blocks.
    let kept = KEEPS && size <= LARGEST && LISTS.try_with(|lists| unsafe { lists.keep(block, size) }).unwrap_or(false);
    if !kept {
        // SAFETY: promised by the caller.
        unsafe { give_back(block, size) };
    }
}

/// # Safety
/// As [`free`].
#[inline(never)]
unsafe fn give_back(block: *mut u8, size: usize) {
    // SAFETY: the block was allocated with this layout.
    unsafe { dealloc(block, Layout::from_size_align_unchecked(size, ALIGN)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_kept_by_size_up_to_a_number() {
        const NUMBER: usize = MOST / 32;

        let lists = Lists([const { Cell::new(std::ptr::null_mut()) }; SIZES]);
        assert!(lists.take(32).is_null());
        let blocks: Vec<*mut u8> = (0..NUMBER + 1).map(|_| from_system(32)).collect();
        for (i, &block) in blocks.iter().enumerate() {
            // SAFETY: each block is new and of this size.
            assert_eq!(unsafe { lists.keep(block, 32) }, i < NUMBER);
        }
        assert!(lists.take(16).is_null() && lists.take(48).is_null() && lists.take(LARGEST + ALIGN).is_null());
        assert_eq!(lists.take(32), blocks[NUMBER - 1]);
        assert_eq!(lists.take(32), blocks[NUMBER - 2]);
        for block in [blocks[NUMBER], blocks[NUMBER - 1], blocks[NUMBER - 2]] {
            // SAFETY: these blocks are in no list.
            unsafe { give_back(block, 32) };
        }
        // The remaining blocks are freed with the lists. Miri and AddressSanitizer check that.
    }

    #[test]
    fn sizes_are_multiples() {
        for size in [0, 1, 16, 17, LARGEST, LARGEST + 1] {
            let (block, whole) = allocate(size);
            assert!(!block.is_null() && whole >= size && whole.is_multiple_of(ALIGN));
            // SAFETY: both come from the same call.
            unsafe { free(block, whole) };
        }
        assert!(allocate(usize::MAX).0.is_null() && allocate(usize::MAX - 31).0.is_null());
    }
}
