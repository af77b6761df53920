//! Idle compilers, kept because creating one is expensive. Their number, and so their memory, is bounded.

use std::sync::{Mutex, PoisonError};

/// The maximum number of idle ones.
const LIMIT: usize = 16;

/// A pool of things, each used by one thread at a time.
pub(crate) struct ObjectPool<T> {
    idle: Mutex<Vec<T>>,
}

impl<T> Default for ObjectPool<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> ObjectPool<T> {
    /// An empty pool.
    pub(crate) const fn new() -> Self {
        ObjectPool { idle: Mutex::new(Vec::new()) }
    }

    pub(crate) fn take(&self) -> Option<T> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Returns a thing to the pool, unless the pool is full.
    pub(crate) fn give(&self, thing: T) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < LIMIT {
            idle.push(thing);
        }
    }
}
