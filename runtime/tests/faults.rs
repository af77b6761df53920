//! An allocator that fails when a test requests it, on the test's own thread. Tests of the crate `tvm-ffi-codegen`
//! include this file.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// The number of allocations that succeed from now on; unlimited if negative.
    static LEFT: Cell<i64> = const { Cell::new(-1) };
}

struct Failing;

#[global_allocator]
static ALLOCATOR: Failing = Failing;

fn fails() -> bool {
    // An ending thread has no count any more.
    LEFT.try_with(|left| match left.get() {
        0 => true,
        count => {
            left.set(if count > 0 { count - 1 } else { count });
            false
        }
    })
    .unwrap_or(false)
}

// SAFETY: uses the system's allocator, or returns NULL for missing memory.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: promised by the caller.
        if fails() { std::ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: promised by the caller.
        if fails() { std::ptr::null_mut() } else { unsafe { System.alloc_zeroed(layout) } }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: promised by the caller.
        if fails() { std::ptr::null_mut() } else { unsafe { System.realloc(block, layout, size) } }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: promised by the caller.
        unsafe { System.dealloc(block, layout) };
    }
}

/// Runs `body` with `count` allocations that succeed. All others of this thread fail. Returns true if one did.
pub fn with_allocations<R>(count: i64, body: impl FnOnce() -> R) -> (R, bool) {
    LEFT.set(count);
    let result = body();
    let failed = LEFT.replace(-1) == 0;
    (result, failed)
}

/// Runs `body` with 0, 1, 2 allocations and so on, until it has enough. It may fail, but must not end the process.
pub fn with_ever_more_allocations(mut body: impl FnMut()) -> i64 {
    let mut count = 0;
    while with_allocations(count, &mut body).1 {
        count += 1;
    }
    count
}
