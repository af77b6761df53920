//! Idle compilers: what they cost to make is paid once, and what they hold is bounded.

use std::sync::{Mutex, PoisonError};

/// How many to keep.
const LIMIT: usize = 16;

/// Things that a thread takes to use alone, and gives back.
pub(super) struct Pool<T> {
    idle: Mutex<Vec<T>>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Pool { idle: Mutex::default() }
    }
}

impl<T> Pool<T> {
    pub(super) fn take(&self) -> Option<T> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Keeps it for the next one, unless there are enough.
    pub(super) fn give(&self, thing: T) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < LIMIT {
            idle.push(thing);
        }
    }
}
