//! Forks. The lock is held during a fork, so that the child finds a consistent state in which it can take the lock.

#[cfg(all(unix, not(miri)))]
mod handlers {
    use std::cell::UnsafeCell;
    use std::ffi::c_int;
    use std::sync::atomic::Ordering;
    use std::sync::{MutexGuard, Once};

    use crate::dispatch::process::{FORKED, State, lock};
    use crate::dispatch::thread;

    unsafe extern "C" {
        fn pthread_atfork(
            prepare: Option<unsafe extern "C" fn()>,
            parent: Option<unsafe extern "C" fn()>,
            child: Option<unsafe extern "C" fn()>,
        ) -> c_int;
    }

    /// The lock's guard while a fork is under way.
    struct Held(UnsafeCell<Option<MutexGuard<'static, State>>>);

    // SAFETY: only the thread that holds the lock accesses the guard, which is on one thread from `prepare` to
    // `release`, in the child too.
    unsafe impl Sync for Held {}

    static HELD: Held = Held(UnsafeCell::new(None));

    unsafe extern "C" fn prepare() {
        let guard = lock();
        // SAFETY: this thread holds the lock.
        unsafe { *HELD.0.get() = Some(guard) };
    }

    unsafe extern "C" fn release() {
        // SAFETY: this thread holds the lock since `prepare`.
        drop(unsafe { (*HELD.0.get()).take() });
    }

    unsafe extern "C" fn child() {
        FORKED.store(thread::id(), Ordering::Relaxed);
        // SAFETY: as the parent's handler.
        unsafe { release() };
    }

    pub fn install() {
        static ONCE: Once = Once::new();
        // Without memory there are no handlers, and a child may find the lock taken.
        // SAFETY: the handlers are functions of this crate, and may run on any thread.
        ONCE.call_once(|| _ = unsafe { pthread_atfork(Some(prepare), Some(release), Some(child)) });
    }
}

#[cfg(not(all(unix, not(miri))))]
mod handlers {
    pub fn install() {}
}

/// Prepares this process for forks.
pub fn install() {
    handlers::install();
}
