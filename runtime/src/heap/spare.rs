//! Blocks of memory for objects. Each thread keeps some of those that it frees, for its next objects.
//! No header section: upstream leaves this to C's allocator, which takes longer.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;

/// The alignment of blocks: what C's allocator gives anyway. Sizes are multiples of it.
pub(super) const ALIGN: usize = 16;
/// The size of the largest blocks that threads keep.
const LARGEST: usize = 512;
const SIZES: usize = LARGEST / ALIGN;
/// Most bytes in blocks of one size that a thread keeps: 64 KiB altogether.
const MOST: usize = 2048;

/// Debug builds give every block back at once, so that the tools that look for uses of freed memory see them.
const KEEPS: bool = !cfg!(debug_assertions);

/// What a kept block holds.
struct Spare {
    next: *mut Spare,
    /// The bytes in blocks from here to the end of the list.
    bytes: usize,
}

const _: () = assert!(size_of::<Spare>() <= ALIGN && align_of::<Spare>() <= ALIGN);

/// The kept blocks, in a list for each size.
struct Lists([Cell<*mut Spare>; SIZES]);

thread_local! {
    static LISTS: Lists = const { Lists([const { Cell::new(std::ptr::null_mut()) }; SIZES]) };
}

impl Lists {
    /// The list of blocks of `size` bytes, which is not zero.
    #[inline]
    fn of(&self, size: usize) -> Option<&Cell<*mut Spare>> {
        self.0.get(size / ALIGN - 1)
    }

    /// A kept block, NULL where there is none.
    #[inline]
    fn take(&self, size: usize) -> *mut u8 {
        let Some(list) = self.of(size) else { return std::ptr::null_mut() };
        let block = list.get();
        if !block.is_null() {
            // SAFETY: a block in a list is nobody else's, and holds a `Spare`.
            list.set(unsafe { (*block).next });
        }
        block.cast()
    }

    /// Keeps a block, unless there are enough of them.
    ///
    /// # Safety
    /// The block must be of [`allocate`] with that size, and nobody use it any more.
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
        // SAFETY: the block is the caller's, of at least this size and alignment.
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
                // SAFETY: only blocks of this size are in the list.
                unsafe { give_back(block, size) };
            }
        }
    }
}

/// The size of the block for so many bytes, 0 where it is no number.
#[inline]
pub(super) const fn size_of_block(size: usize) -> usize {
    match size.checked_next_multiple_of(ALIGN) {
        Some(0) => ALIGN,
        Some(size) => size,
        None => 0,
    }
}

/// A block of at least `size` bytes, NULL where there is no memory, and its own size.
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
/// Block and size must be those of one [`allocate`], and nobody use the block any more.
#[inline]
pub(super) unsafe fn free(block: *mut u8, size: usize) {
    // SAFETY: promised by the caller. A thread that is ending keeps nothing any more.
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
            // SAFETY: each block is a new one of this size.
            assert_eq!(unsafe { lists.keep(block, 32) }, i < NUMBER);
        }
        assert!(lists.take(16).is_null() && lists.take(48).is_null() && lists.take(LARGEST + ALIGN).is_null());
        assert_eq!(lists.take(32), blocks[NUMBER - 1]);
        assert_eq!(lists.take(32), blocks[NUMBER - 2]);
        for block in [blocks[NUMBER], blocks[NUMBER - 1], blocks[NUMBER - 2]] {
            // SAFETY: these blocks are in no list.
            unsafe { give_back(block, 32) };
        }
        // Those that are left are freed with the lists, which Miri and AddressSanitizer see.
    }

    #[test]
    fn sizes_are_multiples() {
        for size in [0, 1, 16, 17, LARGEST, LARGEST + 1] {
            let (block, whole) = allocate(size);
            assert!(!block.is_null() && whole >= size && whole.is_multiple_of(ALIGN));
            // SAFETY: both are of one call.
            unsafe { free(block, whole) };
        }
        assert!(allocate(usize::MAX).0.is_null() && allocate(usize::MAX - 31).0.is_null());
    }
}
