//! The locks of containers that change. They are not in the containers, whose layout is fixed and which C++ code makes too.
//!
//! A lock of the standard library takes two exchanges, each of which waits for all stores before it: one to take the lock, and one to see
//! whether somebody waits when it is given back. These locks are given back by a plain store, so that who waits has to look again and again.
//! Steps under them are some nanoseconds long, and run nobody's code.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::heap::ObjectRef;

/// Looks at a lock that another thread has before this thread lets others run.
const SPINS: u32 = 100;
/// Looks after which a thread that waits sleeps: whoever has the lock may be waiting for the processor, at a lower priority.
const YIELDS: u32 = 200;
/// Sleep between later looks.
const NAP: Duration = Duration::from_micros(50);

/// A lock, in a cache line of its own.
#[repr(align(64))]
struct Lock(AtomicBool);

impl Lock {
    #[inline]
    fn try_take(&self) -> bool {
        // Acquire pairs with the store of the thread that had the lock before.
        !self.0.swap(true, Ordering::Acquire)
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        let mut looks = 0;
        loop {
            // A load leaves the cache line with the thread that has the lock, which is about to write it.
            if !self.0.load(Ordering::Relaxed) && self.try_take() {
                return;
            }
            match looks {
                // Miri runs one thread at a time, which must let others run.
                0..SPINS if !cfg!(miri) => std::hint::spin_loop(),
                0..YIELDS => thread::yield_now(),
                _ => thread::sleep(NAP),
            }
            looks = looks.saturating_add(1);
        }
    }
}

/// A container's lock, which is given back where this is dropped, by a panic too: on the same thread, as code in a step under the lock expects.
pub(super) struct Guard(&'static Lock, PhantomData<*const ()>);

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}

/// Locks a container. One lock serves several containers, so a thread must hold one at a time, and run nobody's code meanwhile.
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

    /// A count that every thread reads and writes in two steps.
    #[test]
    fn one_thread_at_a_time_has_a_lock() {
        static LOCK: Lock = Lock(AtomicBool::new(false));
        struct Count(std::cell::UnsafeCell<u32>);
        // SAFETY: the count is read and written under the lock alone.
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
                        // SAFETY: the lock is this thread's.
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
