//! Which objects there are, in builds with debug assertions: those that a test finds at its end were leaked.
//! No header section: this is for tests.

#[cfg(all(debug_assertions, not(miri)))]
mod record {
    use std::cell::Cell;
    use std::collections::HashMap;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

    /// Addresses of objects, with the numbers of the threads that made them.
    static LIVE: LazyLock<Mutex<HashMap<usize, usize>>> = LazyLock::new(Mutex::default);

    fn live() -> MutexGuard<'static, HashMap<usize, usize>> {
        LIVE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of this thread, which no other one has or gets.
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
        live().insert(address, thread());
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

// Miri finds what is leaked by itself.
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

/// An object was made.
#[inline]
pub(super) fn made<T>(object: *mut T) {
    record::add(object.addr());
}

/// An object is freed, and its address soon another's; or something holds it for as long as the process lives, so that it is no leak.
#[inline]
pub(crate) fn gone<T>(object: *mut T) {
    record::remove(object.addr());
}

/// The number of objects that this runtime has made and that are still there; `None` in builds without debug assertions.
///
/// Global functions are among them. Those that the runtime made for itself are not, nor are methods and attributes of types, which nothing
/// takes out of the type table.
pub fn live_objects() -> Option<usize> {
    record::count()
}

/// The number of objects that this thread has made and that are still there, otherwise as [`live_objects`]: for tests that run beside others.
pub fn live_objects_of_thread() -> Option<usize> {
    record::count_of_thread()
}
