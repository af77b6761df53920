//! The state that all tables of the process share, under one lock: misses, the threads that wait for them, threads'
//! records, and removed functions that calls still use. No thread calls or drops a function under the lock. So it is
//! held briefly, and never while a thread waits for Python's GIL.

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tvm_ffi_runtime::error::{set_raised, take_raised};

use super::entry::Entry;
use super::hazard::{Record, of_thread, set_of_thread};
use super::miss::Miss;
use super::writer::Writer;
use super::{barrier, thread};

/// The process's lock.
pub static STATE: Mutex<State> = Mutex::new(State {
    tables: BTreeMap::new(),
    making: Vec::new(),
    waiting: Vec::new(),
    acting: Vec::new(),
    records: Vec::new(),
    removed: Vec::new(),
});
/// Signals that a miss has ended.
pub static ENDED: Condvar = Condvar::new();
/// The number of the thread that has forked this process, until the others' work is forgotten; otherwise 0.
pub static FORKED: AtomicU64 = AtomicU64::new(0);

pub struct State {
    tables: BTreeMap<u64, Writer>,
    /// All misses under way, with their tables.
    pub making: Vec<(u64, Arc<Miss>)>,
    /// The waiting threads, each with the miss that it waits for.
    pub waiting: Vec<(u64, Arc<Miss>)>,
    /// Threads that work for a thread which waits for them.
    pub acting: Vec<(u64, u64)>,
    records: Vec<&'static Record>,
    /// Entries that no table has any more.
    pub removed: Vec<Arc<Entry>>,
}

/// Takes the lock.
pub fn lock() -> MutexGuard<'static, State> {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if FORKED.load(Ordering::Relaxed) != 0 {
        let thread = FORKED.swap(0, Ordering::Relaxed);
        state.forget_all_but(thread);
    }
    state
}

/// Frees removed functions that no call uses, and gives the lock back before it drops them.
pub fn unlock(mut state: MutexGuard<'static, State>) {
    let free = state.take_free();
    drop(state);
    quietly(free);
}

/// Drops a value. Whatever that runs, the raised error stays.
pub fn quietly<T>(value: T) {
    let raised = take_raised();
    drop(value);
    if let Some(error) = raised {
        set_raised(error);
    }
}

/// Frees the removed functions that have waited for the end of this thread's hit.
#[cold]
#[inline(never)]
pub fn free_removed() {
    if let Some(record) = of_thread() {
        record.unwant();
    }
    unlock(lock());
}

impl State {
    /// The changing part of a table, by the table's number.
    pub fn writer(&mut self, table: u64) -> &mut Writer {
        self.tables.entry(table).or_default()
    }

    pub fn remove_table(&mut self, table: u64) -> Option<Writer> {
        self.tables.remove(&table)
    }

    /// True if the end of a miss of `maker` needs `thread` to go on, directly or through other threads.
    pub fn waits_for(&self, maker: u64, thread: u64) -> bool {
        // a thread's caller goes on when the thread does
        let mut needed = vec![thread];
        while let Some((_, caller)) = self.acting.iter().find(|(worker, _)| needed.last() == Some(worker)) {
            if needed.contains(caller) {
                break;
            }
            needed.push(*caller);
        }
        let (mut reached, mut next) = (vec![maker], 0);
        while let Some(&other) = reached.get(next) {
            if needed.contains(&other) {
                return true;
            }
            let makers = self.waiting.iter().filter(|(waiting, _)| *waiting == other).map(|(_, miss)| miss.maker);
            let workers = self.acting.iter().filter(|(_, caller)| *caller == other).map(|(worker, _)| *worker);
            let new: Vec<u64> = makers.chain(workers).filter(|thread| !reached.contains(thread)).collect();
            reached.extend(new);
            next += 1;
        }
        false
    }

    /// Gives this thread a record, unless it has one or is ending.
    pub fn register_thread(&mut self) {
        if of_thread().is_some() {
            return;
        }
        thread_local! {
            static RETURN: Return = const { Return };
        }
        // An ending thread would never return a record.
        if RETURN.try_with(|_| ()).is_err() {
            return;
        }
        let free = self.records.iter().find(|record| record.owner.load(Ordering::Relaxed) == 0).copied();
        let record = free.unwrap_or_else(|| {
            let record: &'static Record = Box::leak(Box::new(Record::new(self.records.len())));
            self.records.push(record);
            record
        });
        record.owner.store(thread::id(), Ordering::Relaxed);
        set_of_thread(Some(record));
    }

    /// Takes out the removed entries that no hit names. A thread whose hit names one frees it when the hit is over.
    fn take_free(&mut self) -> Vec<Arc<Entry>> {
        if self.removed.is_empty() || !barrier::of_all_threads() {
            return Vec::new();
        }
        let removed = mem::take(&mut self.removed);
        let (busy, mut free) = self.split(removed);
        self.removed = busy;
        if !self.removed.is_empty() {
            for record in &self.records {
                if self.removed.iter().any(|entry| record.names(Arc::as_ptr(entry))) {
                    record.want();
                }
            }
            // A hit that ends now either sees the request, or is seen here.
            if barrier::of_all_threads() {
                let removed = mem::take(&mut self.removed);
                let (busy, more) = self.split(removed);
                self.removed = busy;
                free.extend(more);
            }
        }
        free
    }

    /// Splits entries into those that hits name, and the others.
    fn split(&self, entries: Vec<Arc<Entry>>) -> (Vec<Arc<Entry>>, Vec<Arc<Entry>>) {
        entries.into_iter().partition(|entry| self.records.iter().any(|record| record.names(Arc::as_ptr(entry))))
    }

    /// In a forked child, forgets the work of all threads but the one that has forked. The other threads' own
    /// references stay, as nobody can release them.
    fn forget_all_but(&mut self, thread: u64) {
        self.making.retain(|(_, miss)| miss.maker == thread);
        for writer in self.tables.values_mut() {
            writer.misses.retain(|_, miss| miss.maker == thread);
        }
        self.waiting.clear();
        self.acting.clear();
        for record in &self.records {
            if record.owner.load(Ordering::Relaxed) != thread {
                record.clear();
            }
        }
    }
}

/// Returns the record of a thread that ends.
struct Return;

impl Drop for Return {
    fn drop(&mut self) {
        let Some(record) = of_thread() else { return };
        set_of_thread(None);
        let state = lock();
        record.clear();
        record.unwant();
        unlock(state);
    }
}
