//! The number of a table's hits. Each thread counts for itself, so that a hit needs no atomic addition.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of threads with counters of their own. Threads beyond these share one.
const THREADS: usize = 64;

/// A counter in a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Counter(AtomicU64);

pub struct Hits {
    own: Box<[Counter; THREADS]>,
    shared: Counter,
}

impl Hits {
    pub fn new() -> Self {
        Self { own: Box::new([const { Counter(AtomicU64::new(0)) }; THREADS]), shared: Counter::default() }
    }

    /// Counts a hit of the thread that owns the record of this index.
    #[inline(always)]
    pub fn count(&self, index: usize) {
        match self.own.get(index) {
            // only this thread writes to it
            Some(Counter(count)) => count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed),
            None => _ = self.shared.0.fetch_add(1, Ordering::Relaxed),
        }
    }

    pub fn total(&self) -> u64 {
        self.own.iter().chain([&self.shared]).map(|counter| counter.0.load(Ordering::Relaxed)).sum()
    }
}
