//! A table by name. Readers take no lock and never wait.
//!
//! Entries are published with atomic stores. A reader counts itself in one of two counters for as long as it uses an
//! entry. A writer that removes an entry waits until every reader that may have found it has finished, and then owns
//! the entry. So nothing is leaked, and the call that removes an entry drops it.

use std::hash::Hasher;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHasher;

struct PublishedEntry<V> {
    hash: u64,
    name: Box<[u8]>,
    value: V,
}

/// Slots for entries: NULL if the slot was never used, and the address of `REMOVED` if its entry was removed. The
/// number of slots is a power of two.
type Places<V> = Box<[AtomicPtr<PublishedEntry<V>>]>;

/// A table of values by name.
pub(super) struct Published<V> {
    places: AtomicPtr<Places<V>>,
    /// The number of current readers, by the side that they entered on.
    readers: [AtomicUsize; 2],
    /// The side on which new readers enter. A waiting writer switches it, so new readers don't keep it waiting.
    side: AtomicUsize,
    /// The number of slots that were ever filled. Writers hold the lock.
    filled: Mutex<usize>,
}

// SAFETY: values are shared by reference among threads, and moved to the thread that removes them.
unsafe impl<V: Send + Sync> Sync for Published<V> {}

/// Marks a slot after its entry was removed. Only its address is used; it is never read.
static REMOVED: u64 = 0;

fn removed<V>() -> *mut PublishedEntry<V> {
    (&raw const REMOVED).cast_mut().cast()
}

fn hash_of(name: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    hasher.finish()
}

/// Counts a reader in while this value lives.
struct Reading<'a>(&'a AtomicUsize);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

fn empty_places<V>(len: usize) -> *mut Places<V> {
    Box::into_raw(Box::new((0..len).map(|_| AtomicPtr::default()).collect()))
}

impl<V> Published<V> {
    pub(super) fn new() -> Self {
        Self {
            places: AtomicPtr::new(empty_places(256)),
            readers: [const { AtomicUsize::new(0) }; 2],
            side: AtomicUsize::new(0),
            filled: Mutex::new(0),
        }
    }

    /// Calls `look` with the value of that name, and returns its result. `look` must be short, and must not use the
    /// table.
    pub(super) fn read<R>(&self, name: &[u8], look: impl FnOnce(&V) -> R) -> Option<R> {
        let hash = hash_of(name);
        let readers = &self.readers[self.side.load(SeqCst) & 1];
        // Count first, then search: either a writer that removes the entry sees this count, or this reader sees that
        // the entry is gone.
        readers.fetch_add(1, SeqCst);
        let _reading = Reading(readers);
        // SAFETY: a writer that replaces the slots, or removes an entry, frees them only after this reader's count is
        // gone.
        unsafe {
            let places = &*self.places.load(SeqCst);
            find(places, hash, name).map(|(_, entry)| look(&(*entry).value))
        }
    }

    /// Sets a value, and returns the one that it replaces.
    ///
    /// # Errors
    /// Returns the new value if the name is taken and `may_replace` is false.
    pub(super) fn insert(&self, name: &[u8], value: V, may_replace: bool) -> Result<Option<V>, V> {
        let hash = hash_of(name);
        let mut filled = self.lock();
        // SAFETY: the slots are replaced only under the lock.
        let places = unsafe { &*self.places.load(SeqCst) };
        // SAFETY: entries are removed only under the lock.
        let found = unsafe { find(places, hash, name) };
        if found.is_some() && !may_replace {
            return Err(value);
        }
        let entry = Box::into_raw(Box::new(PublishedEntry { hash, name: name.into(), value }));
        if let Some((place, old)) = found {
            place.store(entry, SeqCst);
            return Ok(Some(self.take(old)));
        }
        let places = match 4 * (*filled + 1) > 3 * places.len() {
            true => self.grow(&mut filled),
            false => places,
        };
        if let Some(place) = probe(places, hash).find(|place| place.load(SeqCst).is_null()) {
            place.store(entry, SeqCst);
            *filled += 1;
        }
        Ok(None)
    }

    /// Removes a value.
    pub(super) fn remove(&self, name: &[u8]) -> Option<V> {
        let _filled = self.lock();
        // SAFETY: as in `insert`.
        let (place, old) = unsafe { find(&*self.places.load(SeqCst), hash_of(name), name) }?;
        place.store(removed(), SeqCst);
        Some(self.take(old))
    }

    /// All names, sorted.
    pub(super) fn names(&self) -> Vec<Vec<u8>> {
        let _filled = self.lock();
        // SAFETY: as in `insert`.
        let mut names: Vec<Vec<u8>> =
            unsafe { entries(&*self.places.load(SeqCst)).map(|entry| (*entry).name.to_vec()).collect() };
        names.sort_unstable();
        names
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.filled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees an entry that isn't in the table any more, and returns its value.
    fn take(&self, entry: *mut PublishedEntry<V>) -> V {
        self.wait_for_readers();
        // SAFETY: every reader that may have found the entry has finished, and new readers can't find it.
        unsafe { Box::from_raw(entry) }.value
    }

    /// Moves the entries to new slots: twice as many, or the same number if most of the old slots have removed entries.
    fn grow(&self, filled: &mut usize) -> &Places<V> {
        let old = self.places.load(SeqCst);
        // SAFETY: slots and entries change only under the lock, and the caller holds it.
        let places = unsafe { &*old };
        let (len, count) = (places.len(), entries(places).count());
        let new = empty_places(if 2 * count > len { 2 * len } else { len });
        // SAFETY: no other thread has the new slots yet. The next call of this function may free them, but not before.
        let places = unsafe { &*new };
        // SAFETY: as above.
        unsafe {
            for entry in entries(&*old) {
                if let Some(place) = probe(places, (*entry).hash).find(|place| place.load(SeqCst).is_null()) {
                    place.store(entry, SeqCst);
                }
            }
        }
        *filled = count;
        self.places.store(new, SeqCst);
        self.wait_for_readers();
        // SAFETY: the old slots have no readers any more. The entries are in the new ones.
        drop(unsafe { Box::from_raw(old) });
        places
    }

    /// Waits for all current readers. Readers that start meanwhile see the stores made before this call.
    fn wait_for_readers(&self) {
        for side in 0..2 {
            self.side.store(1 - side, SeqCst);
            while self.readers[side].load(SeqCst) != 0 {
                std::thread::yield_now();
            }
        }
    }
}

/// The slots in which an entry with that hash may be, in probing order.
fn probe<V>(places: &Places<V>, hash: u64) -> impl Iterator<Item = &AtomicPtr<PublishedEntry<V>>> {
    let mask = places.len() - 1;
    // The hash's upper bits are the well-mixed ones.
    let start = (hash ^ (hash >> 32)) as usize;
    (0..places.len()).map_while(move |i| places.get(start.wrapping_add(i) & mask))
}

/// The entry of that name, and its slot.
///
/// # Safety
/// The entries must not be freed meanwhile.
unsafe fn find<'a, V>(
    places: &'a Places<V>,
    hash: u64,
    name: &[u8],
) -> Option<(&'a AtomicPtr<PublishedEntry<V>>, *mut PublishedEntry<V>)> {
    for place in probe(places, hash) {
        let entry = place.load(SeqCst);
        if entry.is_null() {
            return None;
        }
        // SAFETY: the pointer isn't the mark, so it is an entry. By contract it isn't freed meanwhile.
        if entry != removed() && unsafe { (*entry).hash == hash && *(*entry).name == *name } {
            return Some((place, entry));
        }
    }
    None
}

/// All entries.
fn entries<V>(places: &Places<V>) -> impl Iterator<Item = *mut PublishedEntry<V>> {
    places.iter().map(|place| place.load(SeqCst)).filter(|&entry| !entry.is_null() && entry != removed())
}

impl<V> Drop for Published<V> {
    fn drop(&mut self) {
        // SAFETY: `&mut self` means that the table has no other users. Each entry is in one slot.
        unsafe {
            let places = Box::from_raw(*self.places.get_mut());
            for entry in entries(&places) {
                drop(Box::from_raw(entry));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn values_are_found_replaced_and_removed() {
        let table = Published::new();
        let count = if cfg!(miri) { 100 } else { 5000 };
        let name = |i: usize| format!("function.{i}").into_bytes();
        for i in 0..count {
            assert_eq!(table.insert(&name(i), i, false), Ok(None));
        }
        assert_eq!(table.insert(&name(7), 0, false), Err(0));
        assert_eq!(table.insert(&name(7), 70, true), Ok(Some(7)));
        assert_eq!(table.read(&name(7), |value| *value), Some(70));
        assert_eq!(table.read(b"no such function", |value| *value), None);
        assert_eq!(table.names().len(), count);
        for i in (0..count).step_by(2) {
            assert_eq!(table.remove(&name(i)), Some(i));
            assert_eq!(table.remove(&name(i)), None);
        }
        assert!((0..count).all(|i| table.read(&name(i), |_| ()).is_some() == (i % 2 == 1)));
        assert!(table.names().is_sorted() && table.names().len() == count / 2);
    }

    #[test]
    fn names_that_come_and_go_take_no_more_places() {
        let table = Published::new();
        for i in 0..if cfg!(miri) { 200 } else { 2000 } {
            let name = format!("{i}").into_bytes();
            assert_eq!(table.insert(&name, i, false), Ok(None));
            assert_eq!(table.remove(&name), Some(i));
        }
        // SAFETY: no other thread uses the table.
        let places = unsafe { &*table.places.load(SeqCst) };
        assert_eq!(places.len(), 256);
    }

    #[test]
    fn values_are_dropped_by_the_call_that_removes_them() {
        let table = Published::new();
        let value = Arc::new(());
        assert!(table.insert(b"a", value.clone(), false).is_ok());
        assert!(matches!(table.insert(b"a", value.clone(), true), Ok(Some(_))));
        assert_eq!(Arc::strong_count(&value), 2);
        drop(table.remove(b"a"));
        assert_eq!(Arc::strong_count(&value), 1);
        assert!(table.insert(b"b", value.clone(), false).is_ok());
        drop(table);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    /// Readers clone values while writers replace, remove and move them. Each value can be checked for consistency.
    #[test]
    fn readers_find_whole_values_while_writers_change_the_table() {
        let table: Published<Arc<(usize, usize)>> = Published::new();
        let rounds = if cfg!(miri) { 10 } else { 300 };
        let whole = |i: usize| Arc::new((i, !i));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..10 * rounds {
                        if let Some(value) = table.read(b"shared", Arc::clone) {
                            assert_eq!(value.0, !value.1);
                        }
                    }
                });
            }
            for i in 0..rounds {
                assert!(table.insert(b"shared", whole(i), true).is_ok());
                assert!(table.insert(format!("{i}").as_bytes(), whole(i), false).is_ok());
                if i % 3 == 0 {
                    assert!(table.remove(b"shared").is_some());
                }
            }
        });
    }
}
