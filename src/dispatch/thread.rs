//! Numbers of threads.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// This thread's number, which no other thread of the process has or will have. It is never 0. A forked child keeps the
/// number of the thread that forked.
pub fn id() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static ID: Cell<u64> = const { Cell::new(0) };
    }
    ID.with(|id| {
        if id.get() == 0 {
            id.set(LAST.fetch_add(1, Ordering::Relaxed) + 1);
        }
        id.get()
    })
}
