//! Which objects there are, in builds with debug assertions: those that a test finds at its end were leaked.
//! No header section: this is for tests.

#[cfg(all(debug_assertions, not(miri)))]
mod record {
    use std::collections::HashSet;
    use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

    /// Addresses of objects.
    static LIVE: LazyLock<Mutex<HashSet<usize>>> = LazyLock::new(Mutex::default);

    fn live() -> MutexGuard<'static, HashSet<usize>> {
        LIVE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(address: usize) {
        live().insert(address);
    }

    pub(super) fn remove(address: usize) {
        live().remove(&address);
    }

    pub(super) fn count() -> Option<usize> {
        Some(live().len())
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
