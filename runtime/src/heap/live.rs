//! Tracks the live objects in builds with debug assertions, so that a test can detect leaked objects at its end.
//! No header section: this is for tests.

#[cfg(all(debug_assertions, not(miri)))]
mod record {
    use std::cell::Cell;
    use std::collections::HashMap;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

    /// Addresses of live objects, with the numbers of the threads that made them.
    static LIVE: LazyLock<Mutex<HashMap<usize, usize>>> = LazyLock::new(Mutex::default);

    fn live() -> MutexGuard<'static, HashMap<usize, usize>> {
        LIVE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The unique number of this thread.
    fn thread() -> usize {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static NUMBER: Cell<usize> = const { Cell::new(0) };
        }
        NUMBER.with(|number| {
            if number.get() == 0 {
                number.set(THREADS.fetch_add(1, Ordering::Relaxed) + 1);
            }
            number.get()
        })
    }

    pub(super) fn add(address: usize) {
        let mut live = live();
        // When out of memory for the record, the object isn't counted.
        if live.try_reserve(1).is_ok() {
            live.insert(address, thread());
        }
    }

    pub(super) fn remove(address: usize) {
        live().remove(&address);
    }

    pub(super) fn count() -> Option<usize> {
        Some(live().len())
    }

    pub(super) fn count_of_thread() -> Option<usize> {
        let thread = thread();
        Some(live().values().filter(|maker| **maker == thread).count())
    }
}

// Miri detects leaks on its own.
#[cfg(not(all(debug_assertions, not(miri))))]
mod record {
    #[inline]
    pub(super) fn add(_address: usize) {}

    #[inline]
    pub(super) fn remove(_address: usize) {}

    pub(super) fn count() -> Option<usize> {
        None
    }

    pub(super) fn count_of_thread() -> Option<usize> {
        None
    }
}

/// Records that an object was made.
#[inline]
pub(super) fn made<T>(object: *mut T) {
    record::add(object.addr());
}

/// Records that an object no longer counts. It may be freed, so its address may be reused. Otherwise something holds it
/// until the process ends, so it is not a leak.
#[inline]
pub(crate) fn gone<T>(object: *mut T) {
    record::remove(object.addr());
}

/// The number of live objects made by this runtime; `None` in builds without debug assertions.
///
/// Global functions are included. Functions that the runtime made for itself are not, and neither are methods and
/// attributes of types, which are never removed from the type table.
pub fn live_objects() -> Option<usize> {
    record::count()
}

/// The number of live objects made by this thread, otherwise as [`live_objects`]. For tests that run in parallel with
/// others.
pub fn live_objects_of_thread() -> Option<usize> {
    record::count_of_thread()
}
