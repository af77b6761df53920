//! Idle compilers: what they cost to make is paid once, and what they hold is bounded.

use std::sync::{Mutex, PoisonError};

/// How many to keep.
const LIMIT: usize = 16;

/// Things that a thread takes to use alone, and gives back.
pub(crate) struct Pool<T> {
    idle: Mutex<Vec<T>>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Pool<T> {
    /// An empty one.
    pub(crate) const fn new() -> Self {
        Pool { idle: Mutex::new(Vec::new()) }
    }

    pub(crate) fn take(&self) -> Option<T> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Keeps it for the next one, unless there are enough.
    pub(crate) fn give(&self, thing: T) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < LIMIT {
            idle.push(thing);
        }
    }
}
