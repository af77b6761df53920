//! A call of `on_miss` that is under way.

use std::sync::{Arc, OnceLock};

use tvm_ffi_runtime::Function;

use super::key::Key;

/// The making of one function, by one thread.
pub struct Miss {
    pub key: Arc<Key>,
    /// The number of the thread that calls `on_miss`.
    pub maker: u64,
    /// Set once, under the process's lock: the function, or `None` after an error.
    pub outcome: OnceLock<Option<Function>>,
}

impl Miss {
    pub fn new(key: Arc<Key>, maker: u64) -> Self {
        Self { key, maker, outcome: OnceLock::new() }
    }
}
