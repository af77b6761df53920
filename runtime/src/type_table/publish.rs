//! How arrays that C code reads without a lock grow.

use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

/// Arrays that readers may still be in. They are kept here, so that tools that look for leaks find them.
static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

struct Kept(#[expect(dead_code, reason = "is kept and never read")] *const c_void);

// SAFETY: the address is never used.
unsafe impl Send for Kept {}

/// Keeps an array that a larger one replaces.
pub(super) fn keep(array: *const c_void) {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(Kept(array));
}

/// Appends an item to an array and publishes it: the item first, then its array, then the length, so that no reader runs past it. The
/// array doubles where its length is a power of two; the old one stays where it is, for whoever reads it.
///
/// # Safety
/// Both places must be fields of a structure that is never freed, and filled by this function alone, one thread at a time.
pub(super) unsafe fn append<T: Copy>(array: *mut *const T, len: *mut i32, item: T) {
    // SAFETY: promised by the caller: the array has `len` items, and room for more up to the next power of two, which no reader looks
    // at yet. Both places are aligned as fields of a repr(C) structure.
    unsafe {
        let (mut items, count) = ((*array).cast_mut(), *len as usize);
        if count == 0 || count.is_power_of_two() {
            let mut larger = Vec::with_capacity((2 * count).max(1));
            if count > 0 {
                larger.extend_from_slice(std::slice::from_raw_parts(items, count));
            }
            items = larger.as_mut_ptr();
            std::mem::forget(larger);
            keep(array.read().cast());
        }
        items.add(count).write(item);
        AtomicPtr::from_ptr(array.cast::<*mut T>()).store(items, Ordering::Release);
        AtomicI32::from_ptr(len).store(count as i32 + 1, Ordering::Release);
    }
}
