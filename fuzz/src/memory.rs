//! An allocator that counts the memory of each thread, for targets that bound what an input takes.
//!
//! A target's program installs it. The tests of the root crate have another allocator, so there nothing is counted.
#![cfg_attr(test, allow(dead_code))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// The bytes that this thread holds, and their maximum.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

/// The system's allocator, with counts.
pub struct Counting;

fn count(change: isize) {
    // an ending thread has no count any more
    let _ = HELD.try_with(|held| {
        let (now, most) = held.get();
        held.set((now + change, most.max(now + change)));
    });
}

/// Runs `body`, and returns the bytes that this thread held at most in addition to those before.
pub fn peak(body: impl FnOnce()) -> usize {
    let before = HELD.get().0;
    HELD.set((before, before));
    body();
    usize::try_from(HELD.get().1 - before).unwrap_or_default()
}

// SAFETY: uses the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: promised by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: promised by the caller.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: promised by the caller.
        unsafe { System.dealloc(block, layout) };
    }
}
