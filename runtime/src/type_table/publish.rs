//! How arrays that C code reads without a lock grow.

use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

/// Publishes a longer array: the array first, then its length, so that no reader runs past it.
///
/// # Safety
/// Both places must be fields of an info that is never freed, changed under the write lock only.
pub(super) unsafe fn publish<T>(array: *mut *const T, len: *mut i32, new_array: *mut T, new_len: i32) {
    // SAFETY: promised by the caller; both are aligned as fields of a repr(C) structure.
    unsafe {
        AtomicPtr::from_ptr(array.cast::<*mut T>()).store(new_array, Ordering::Release);
        AtomicI32::from_ptr(len).store(new_len, Ordering::Release);
    }
}
