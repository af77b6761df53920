//! The entries of a table as hits find them: open addressing with linear probing.
//!
//! One thread at a time changes the slots, while hits read them. A hit may then miss an entry that a change moves, and
//! looks again under the lock. It never uses an entry that isn't in the slots.

use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::entry::Entry;

/// The number of slots of a new table.
const FEWEST: usize = 16;

#[derive(Default)]
struct Slot {
    /// The hash of the entry's key, to pass over other entries without reading them.
    hash: AtomicU64,
    entry: AtomicPtr<Entry>,
}

/// The slots. At most half of them are taken.
pub struct Slots {
    slots: Box<[Slot]>,
}

impl Slots {
    /// Room for that many entries.
    pub fn with_room(entries: usize) -> Self {
        let count = entries.saturating_mul(2).max(FEWEST).next_power_of_two();
        Self { slots: (0..count).map(|_| Slot::default()).collect() }
    }

    pub fn has_room(&self, entries: usize) -> bool {
        entries <= self.slots.len() / 2
    }

    #[inline(always)]
    fn at(&self, position: u64) -> Option<&Slot> {
        // The number of slots is a power of two.
        self.slots.get(position as usize & (self.slots.len() - 1))
    }

    /// The entry with a hash, and the place that has it.
    #[inline(always)]
    pub fn find(&self, hash: u64) -> Option<(*mut Entry, &AtomicPtr<Entry>)> {
        let mut position = hash;
        loop {
            let slot = self.at(position)?;
            let entry = slot.entry.load(Ordering::Acquire);
            if entry.is_null() {
                return None;
            }
            if slot.hash.load(Ordering::Relaxed) == hash {
                return Some((entry, &slot.entry));
            }
            position = position.wrapping_add(1);
        }
    }

    /// Adds an entry, for which there is room.
    pub fn insert(&self, entry: &Arc<Entry>) {
        let hash = entry.key.hash();
        let free = (0..self.slots.len() as u64).find_map(|step| {
            self.at(hash.wrapping_add(step)).filter(|slot| slot.entry.load(Ordering::Relaxed).is_null())
        });
        if let Some(slot) = free {
            slot.set(hash, Arc::as_ptr(entry).cast_mut());
        }
    }

    /// Removes an entry, and moves later ones so that no search ends too early.
    pub fn remove(&self, entry: &Arc<Entry>) {
        let mask = self.slots.len() as u64 - 1;
        let start = entry.key.hash();
        let is_entry = |slot: &Slot| slot.entry.load(Ordering::Relaxed).cast_const() == Arc::as_ptr(entry);
        let Some(step) = (0..=mask).find(|step| self.at(start.wrapping_add(*step)).is_some_and(is_entry)) else {
            return;
        };
        let mut hole = start.wrapping_add(step) & mask;
        let mut position = hole;
        loop {
            position = (position + 1) & mask;
            let (Some(slot), Some(free)) = (self.at(position), self.at(hole)) else { return };
            let (hash, next) = (slot.hash.load(Ordering::Relaxed), slot.entry.load(Ordering::Relaxed));
            if next.is_null() {
                free.entry.store(null_mut(), Ordering::SeqCst);
                return;
            }
            let is_reached_through_hole = position.wrapping_sub(hash) & mask >= position.wrapping_sub(hole) & mask;
            if is_reached_through_hole {
                free.set(hash, next);
                hole = position;
            }
        }
    }

    /// Removes all entries.
    pub fn clear(&self) {
        self.slots.iter().for_each(|slot| slot.entry.store(null_mut(), Ordering::SeqCst));
    }
}

impl Slot {
    fn set(&self, hash: u64, entry: *mut Entry) {
        self.hash.store(hash, Ordering::Relaxed);
        self.entry.store(entry, Ordering::SeqCst);
    }
}
