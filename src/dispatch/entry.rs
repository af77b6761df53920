//! A function that a table keeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tvm_ffi_runtime::Function;
use tvm_ffi_runtime::abi::TVMFFISafeCallType;

use super::key::Key;

/// A function with its key. A call may read it without a reference while its thread's record names it.
pub struct Entry {
    pub key: Arc<Key>,
    pub function: Function,
    /// The function's callable, which a hit would otherwise read from the function object.
    pub callable: TVMFFISafeCallType,
    /// The table's time when it took the entry.
    pub taken: u64,
    /// The table's time when a call last used the entry.
    used: AtomicU64,
}

impl Entry {
    pub fn new(key: Arc<Key>, function: Function, time: u64) -> Self {
        Self { key, callable: function.as_safe_call(), function, taken: time, used: AtomicU64::new(time) }
    }

    /// Notes a use. It writes only at the first use after the table has taken another entry, so that threads which call
    /// the same function don't write to the same memory.
    #[inline(always)]
    pub fn note_use(&self, time: u64) {
        if self.used.load(Ordering::Relaxed) != time {
            self.used.store(time, Ordering::Relaxed);
        }
    }

    /// Orders entries for eviction: the least recently used first; of those used at the same time, the one that the
    /// table took first.
    pub fn age(&self) -> (u64, u64) {
        (self.used.load(Ordering::Relaxed), self.taken)
    }
}
