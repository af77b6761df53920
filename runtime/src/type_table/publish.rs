//! Growing of arrays that C code reads without a lock.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

/// Replaced arrays that other threads may still read. They are never freed, and listed here so leak checkers don't
/// report them.
static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

struct Kept(#[expect(dead_code, reason = "is kept and never read")] *const c_void);

// SAFETY: the address is never used.
unsafe impl Send for Kept {}

/// Keeps an array after a larger one replaces it.
pub(super) fn keep(array: *const c_void) {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(Kept(array));
}

/// An array that [`append`] may extend; NULL if it is empty.
pub(super) fn leak_array<T: Copy>(mut items: Vec<T>) -> *const T {
    if items.is_empty() {
        return std::ptr::null();
    }
    items.reserve_exact(items.len().next_power_of_two() - items.len());
    // Not a pointer to a slice, which would have no access to the rest of the capacity.
    ManuallyDrop::new(items).as_mut_ptr()
}

/// Appends an item to an array and publishes it. The item is stored first, then the array, then the length, so no
/// reader reads past the end. The array doubles when its length is a power of two. The old one is kept for threads that
/// still read it.
///
/// # Safety
/// `array` and `len` must point at fields of a structure that is never freed. Only this function may change them, on
/// one thread at a time.
pub(super) unsafe fn append<T: Copy>(array: *mut *const T, len: *mut i32, item: T) {
    // SAFETY: promised by the caller: the array has `len` items, and a capacity of the next power of two. No reader
    // reads past `len`. Both fields are aligned, since their structure is repr(C).
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_arrays_grow() {
        assert!(leak_array::<u8>(Vec::new()).is_null());
        for start in 1..6 {
            let (mut array, mut len) = (leak_array((0..start).collect()), start);
            while len < 10 {
                // SAFETY: the array and its length are this test's own. The test leaks the array.
                unsafe { append(&raw mut array, &raw mut len, len) };
            }
            // SAFETY: the array has that many items.
            let items = unsafe { std::slice::from_raw_parts(array, len as usize) };
            assert_eq!(items, (0..10).collect::<Vec<i32>>());
            keep(array.cast());
        }
    }
}
