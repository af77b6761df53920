//! The part of a table that threads change, under the process's lock.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::entry::Entry;
use super::key::Key;
use super::miss::Miss;
use super::slots::Slots;

#[derive(Default)]
pub struct Writer {
    pub entries: HashMap<Arc<Key>, Arc<Entry>>,
    /// The misses whose functions the table will keep. A miss that isn't here any more is detached.
    pub misses: HashMap<Arc<Key>, Arc<Miss>>,
    /// The slots of the table, and behind them older ones, which are empty. A call may still be reading these. As each
    /// has twice the room of the one before, all of them together take as much memory as the newest.
    pub slots: Vec<Arc<Slots>>,
    pub counts: Counts,
}

/// The counters of a table, without the hits of threads with records.
#[derive(Default)]
pub struct Counts {
    pub hits: u64,
    pub waits: u64,
    pub misses: u64,
    pub errors: u64,
    pub evictions: u64,
    pub time: Duration,
}
