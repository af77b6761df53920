//! The counting protocol of `TVMFFIObject::combined_ref_count`.
//! Strong references are counted in the low half, weak ones in the high half. All strong references together hold one
//! weak reference. Follows upstream's `object.h`.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use crate::abi::*;

/// One strong reference.
pub(crate) const STRONG_ONE: u64 = 1;
/// One weak reference.
pub(crate) const WEAK_ONE: u64 = 1 << 32;
/// The counts of a new object: one strong reference and the weak reference that strong ones share.
pub(crate) const BOTH_ONE: u64 = STRONG_ONE | WEAK_ONE;
/// The half that counts strong references.
pub(crate) const STRONG_MASK: u64 = (1 << 32) - 1;

/// Maximum number of references of either kind. The other half of the counter's range is headroom for threads that add
/// references concurrently.
const MAX_COUNT: u64 = u32::MAX as u64 / 2;

/// Aborts the process, as `Arc` does: a count that wraps around would free an object in use. Only a program that leaks
/// references without end reaches this.
#[cold]
#[inline(never)]
fn too_many_references() -> ! {
    std::process::abort()
}

/// Adds a strong reference.
///
/// # Safety
/// `object` must be alive: the caller has, or borrows, a strong reference.
#[inline]
pub(crate) unsafe fn inc_ref(object: *mut TVMFFIObject) {
    // SAFETY: the object is alive by contract. Relaxed is enough: a new reference is made from an
    // existing one, which keeps the object alive.
    let before = unsafe { &*object }.combined_ref_count.fetch_add(STRONG_ONE, Ordering::Relaxed);
    if before & STRONG_MASK > MAX_COUNT {
        too_many_references();
    }
}

/// Releases a strong reference, and destroys the object if it was the last one.
///
/// # Safety
/// The caller must own a strong reference, which this call consumes.
#[inline]
pub(crate) unsafe fn dec_ref(object: *mut TVMFFIObject) {
    // SAFETY: the caller's reference keeps the object alive up to the subtraction.
    let counts = unsafe { &(*object).combined_ref_count };
    // Acquire pairs with the releases of all earlier references.
    if counts.load(Ordering::Acquire) == BOTH_ONE {
        // No reference is left from which another thread could make one, so this needs no exchange. Code that reads the
        // counts from the destructor finds them as after a subtraction.
        counts.store(WEAK_ONE, Ordering::Relaxed);
        // SAFETY: no reference of either kind is left.
        unsafe { call_deleter(object, kTVMFFIObjectDeleterFlagBitMaskBoth) };
        return;
    }
    // Release makes this thread's uses of the object happen before its destruction.
    let before = counts.fetch_sub(STRONG_ONE, Ordering::Release);
    if before & STRONG_MASK == STRONG_ONE {
        // SAFETY: the last strong reference is gone, and only this thread saw the count reach zero.
        unsafe { drop_last_strong(object, before) };
    }
}

/// Releases a strong reference unless it is the last one. Returns whether the reference is released.
///
/// # Safety
/// The caller must own a strong reference, which is gone if the result is true.
#[inline]
pub(crate) unsafe fn dec_if_shared(object: *mut TVMFFIObject) -> bool {
    // SAFETY: the caller's reference keeps the object alive up to the subtraction.
    let counts = unsafe { &(*object).combined_ref_count };
    let shared = |count: u64| (count & STRONG_MASK > STRONG_ONE).then(|| count - STRONG_ONE);
    // Release makes this thread's uses of the object happen before its destruction.
    counts.try_update(Ordering::Release, Ordering::Relaxed, shared).is_ok()
}

/// # Safety
/// The caller has decremented the strong count to zero; `before` are the counts before that.
#[cold]
#[inline(never)]
unsafe fn drop_last_strong(object: *mut TVMFFIObject, before: u64) {
    // Acquire pairs with the releases of all other strong references. This is a load because ThreadSanitizer doesn't
    // support fences. The preceding subtraction doesn't use Acquire, because every other call would pay for it.
    // SAFETY: the weak reference that strong ones share keeps the counts alive.
    unsafe { &*object }.combined_ref_count.load(Ordering::Acquire);
    if before == BOTH_ONE {
        // SAFETY: no reference of either kind is left.
        unsafe { call_deleter(object, kTVMFFIObjectDeleterFlagBitMaskBoth) };
    } else {
        // SAFETY: no strong reference is left; the shared weak one keeps the storage.
        unsafe {
            call_deleter(object, kTVMFFIObjectDeleterFlagBitMaskStrong);
            dec_weak(object);
        }
    }
}

/// Adds a weak reference.
///
/// # Safety
/// The caller has, or borrows, a strong or weak reference.
#[inline]
pub(crate) unsafe fn inc_weak(object: *mut TVMFFIObject) {
    // SAFETY: the caller's reference keeps the storage alive.
    let before = unsafe { &*object }.combined_ref_count.fetch_add(WEAK_ONE, Ordering::Relaxed);
    if before >> 32 > MAX_COUNT {
        too_many_references();
    }
}

/// Releases a weak reference, and frees the storage if no reference is left.
///
/// # Safety
/// The caller must own a weak reference, which this call consumes.
pub(crate) unsafe fn dec_weak(object: *mut TVMFFIObject) {
    // SAFETY: the caller's reference keeps the storage alive up to this subtraction.
    let before = unsafe { &(*object).combined_ref_count }.fetch_sub(WEAK_ONE, Ordering::Release);
    if before == WEAK_ONE {
        // SAFETY: only this thread frees the storage, below.
        unsafe { &*object }.combined_ref_count.load(Ordering::Acquire);
        // SAFETY: no reference of either kind is left, and the destructor ran when the last strong one was released.
        unsafe { call_deleter(object, kTVMFFIObjectDeleterFlagBitMaskWeak) };
    }
}

/// Adds a strong reference to an object that the caller holds weakly, unless the object has been destroyed.
///
/// # Safety
/// The caller has, or borrows, a weak reference.
pub(crate) unsafe fn try_upgrade(object: *mut TVMFFIObject) -> bool {
    // SAFETY: the weak reference keeps the storage, and with it the counts, alive.
    let counts = unsafe { &(*object).combined_ref_count };
    let before = counts.try_update(Ordering::Acquire, Ordering::Relaxed, |count| {
        (count & STRONG_MASK != 0).then_some(count + STRONG_ONE)
    });
    if before.is_ok_and(|before| before & STRONG_MASK > MAX_COUNT) {
        too_many_references();
    }
    before.is_ok()
}

/// The current counts, strong and weak (without the weak one that strong references share).
///
/// # Safety
/// The caller has, or borrows, a reference of either kind.
pub(crate) unsafe fn counts(object: *mut TVMFFIObject) -> (u32, u32) {
    // SAFETY: the reference keeps the counts alive.
    let count = unsafe { &*object }.combined_ref_count.load(Ordering::Acquire);
    let strong = (count & STRONG_MASK) as u32;
    let weak = (count >> 32) as u32;
    (strong, weak - u32::from(strong != 0))
}

/// # Safety
/// No strong reference, or no reference at all, is left, as the flags say.
#[inline]
unsafe fn call_deleter(object: *mut TVMFFIObject, flags: c_int) {
    // SAFETY: the storage is alive until the deleter has seen the weak flag.
    if let Some(deleter) = unsafe { (*object).deleter } {
        // SAFETY: the deleter belongs to this object, and each flag is passed once.
        unsafe { deleter(object.cast(), flags) };
    }
}
