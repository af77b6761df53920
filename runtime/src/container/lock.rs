//! Locks for mutable containers. They are stored outside the containers, whose layout is fixed and which C++ code
//! creates too.
//!
//! A standard-library lock takes two atomic exchanges, one to take the lock and one at release to check for waiting
//! threads. Each waits for all earlier stores. These locks are released with a plain store, so a waiting thread has to
//! poll. Steps under these locks take a few nanoseconds and run no user code.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::heap::ObjectRef;

/// Polls of a lock held by another thread before this thread yields.
const SPINS: u32 = 100;
/// Polls after which a waiting thread sleeps: the thread that holds the lock may have lower priority and be waiting for
/// the processor.
const YIELDS: u32 = 200;
/// Sleep between later polls.
const NAP: Duration = Duration::from_micros(50);

/// A lock in its own cache line.
#[repr(align(64))]
struct Lock(AtomicBool);

impl Lock {
    #[inline]
    fn try_take(&self) -> bool {
        // Acquire pairs with the releasing store of the thread that held the lock before.
        !self.0.swap(true, Ordering::Acquire)
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        let mut looks = 0;
        loop {
            // A load leaves the cache line with the thread that holds the lock, which is about to write it.
            if !self.0.load(Ordering::Relaxed) && self.try_take() {
                return;
            }
            match looks {
                // Miri runs one thread at a time, so a waiting thread must yield to the others.
                0..SPINS if !cfg!(miri) => std::hint::spin_loop(),
                0..YIELDS => thread::yield_now(),
                _ => thread::sleep(NAP),
            }
            looks = looks.saturating_add(1);
        }
    }
}

/// Holds a container's lock and releases it on drop, including when a panic unwinds. It stays on one thread, as code in
/// a step under the lock expects.
pub(super) struct Guard(&'static Lock, PhantomData<*const ()>);

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}

/// Locks a container. Several containers share one lock, so a thread must hold only one at a time and must run no user
/// code meanwhile.
#[inline]
pub(super) fn lock(object: &ObjectRef) -> Guard {
    static LOCKS: [Lock; 64] = [const { Lock(AtomicBool::new(false)) }; 64];
    let address = object.as_ptr().addr();
    let lock = &LOCKS[(address >> 6) % LOCKS.len()];
    if !lock.try_take() {
        lock.wait();
    }
    Guard(lock, PhantomData)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// A counter that every thread reads and writes in two separate steps.
    #[test]
    fn one_thread_at_a_time_has_a_lock() {
        static LOCK: Lock = Lock(AtomicBool::new(false));
        struct Count(std::cell::UnsafeCell<u32>);
        // SAFETY: the counter is only read and written under the lock.
        unsafe impl Sync for Count {}
        static COUNT: Count = Count(std::cell::UnsafeCell::new(0));
        let (threads, rounds) = if cfg!(miri) { (3, 20) } else { (4, 20_000) };
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        if !LOCK.try_take() {
                            LOCK.wait();
                        }
                        let _guard = Guard(&LOCK, PhantomData);
                        // SAFETY: this thread holds the lock.
                        unsafe { COUNT.0.get().write(COUNT.0.get().read() + 1) };
                    }
                });
            }
        });
        // SAFETY: the threads have ended.
        assert_eq!(unsafe { COUNT.0.get().read() }, threads * rounds);
    }

    #[test]
    fn a_thread_that_waits_long_gets_the_lock() {
        static LOCK: Lock = Lock(AtomicBool::new(false));
        assert!(LOCK.try_take());
        thread::scope(|scope| {
            let waiting = scope.spawn(|| LOCK.wait());
            thread::sleep(Duration::from_millis(20));
            assert!(!waiting.is_finished());
            drop(Guard(&LOCK, PhantomData));
        });
        assert!(!LOCK.try_take(), "the other thread has it");
    }

    #[test]
    fn a_panic_gives_the_lock_back() {
        static LOCK: Lock = Lock(AtomicBool::new(false));
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            assert!(LOCK.try_take());
            let _guard = Guard(&LOCK, PhantomData);
            std::panic::resume_unwind(Box::new("of the test"));
        }));
        assert!(outcome.is_err() && LOCK.try_take());
    }
}
