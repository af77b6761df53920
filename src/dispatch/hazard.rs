//! Hazard pointers to the functions that each thread is calling. A hit writes to its own thread's record only.

use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, compiler_fence};

use super::barrier;
use super::entry::Entry;

/// The number of nested hits that a record has places for. Deeper ones take a reference to the function.
const DEPTH: usize = 12;

/// The hits that are under way on one thread. Records are never freed; when a thread ends, another one takes its record
/// over.
#[repr(align(128))]
pub struct Record {
    /// The number of hits under way. Only the owner accesses it.
    depth: AtomicUsize,
    /// Removed entries wait for this thread's hits.
    wanted: AtomicBool,
    is_asymmetric: bool,
    /// The place of this record in the list of all.
    pub index: usize,
    /// The owning thread's number, or 0.
    pub owner: AtomicU64,
    entries: [AtomicPtr<Entry>; DEPTH],
}

thread_local! {
    /// This thread's record. It needs neither an initialiser nor a destructor, so that a hit reads it directly.
    static RECORD: Cell<Option<&'static Record>> = const { Cell::new(None) };
}

/// This thread's record, unless it has none yet.
#[inline(always)]
pub fn of_thread() -> Option<&'static Record> {
    RECORD.get()
}

/// Sets this thread's record.
pub fn set_of_thread(record: Option<&'static Record>) {
    RECORD.set(record);
}

impl Record {
    pub fn new(index: usize) -> Self {
        Self {
            depth: AtomicUsize::new(0),
            wanted: AtomicBool::new(false),
            is_asymmetric: barrier::is_asymmetric(),
            index,
            owner: AtomicU64::new(0),
            entries: [const { AtomicPtr::new(null_mut()) }; DEPTH],
        }
    }

    /// Names an entry, which `place` had just before, so that it isn't freed. Only the owner may call this. It fails if
    /// `place` has another entry by now, or if too many hits are under way.
    #[inline(always)]
    pub fn protect(&self, entry: *mut Entry, place: &AtomicPtr<Entry>) -> Option<Hit<'_>> {
        let depth = self.depth.load(Ordering::Relaxed);
        let name = self.entries.get(depth)?;
        // The release makes earlier uses of the entry named before visible to a thread that reads this one.
        let found = if self.is_asymmetric {
            name.store(entry, Ordering::Release);
            compiler_fence(Ordering::SeqCst);
            place.load(Ordering::Acquire)
        } else {
            name.store(entry, Ordering::SeqCst);
            place.load(Ordering::SeqCst)
        };
        self.depth.store(depth + 1, Ordering::Relaxed);
        let hit = Hit { record: self, name, depth };
        if found == entry {
            return Some(hit);
        }
        // A removal may have seen the name, and would then wait for this thread.
        abandon(hit);
        None
    }

    /// True if a hit of this thread names the entry.
    pub fn names(&self, entry: *const Entry) -> bool {
        self.entries.iter().any(|name| name.load(Ordering::SeqCst).cast_const() == entry)
    }

    /// Asks the thread to free removed entries when its hit is over.
    pub fn want(&self) {
        self.wanted.store(true, Ordering::SeqCst);
    }

    /// Takes the request back.
    pub fn unwant(&self) -> bool {
        self.wanted.swap(false, Ordering::SeqCst)
    }

    /// Forgets the hits of a thread that has ended.
    pub fn clear(&self) {
        self.entries.iter().for_each(|name| name.store(null_mut(), Ordering::SeqCst));
        self.depth.store(0, Ordering::Relaxed);
        self.owner.store(0, Ordering::Relaxed);
    }
}

/// A hit under way. Its owner calls [`Hit::end`].
#[must_use]
pub struct Hit<'r> {
    record: &'r Record,
    name: &'r AtomicPtr<Entry>,
    depth: usize,
}

impl Hit<'_> {
    /// Ends the hit. Returns true if removed entries wait for this thread, which then has to free them.
    #[inline(always)]
    pub fn end(self) -> bool {
        self.record.depth.store(self.depth, Ordering::Relaxed);
        if self.record.is_asymmetric {
            self.name.store(null_mut(), Ordering::Release);
            compiler_fence(Ordering::SeqCst);
            self.record.wanted.load(Ordering::Relaxed)
        } else {
            self.name.store(null_mut(), Ordering::SeqCst);
            self.record.wanted.load(Ordering::SeqCst)
        }
    }
}

/// Ends a hit that found another entry. The thread then misses, and a miss frees removed entries anyway.
#[cold]
fn abandon(hit: Hit<'_>) {
    let _ = hit.end();
}
