//! Dicts: maps that change, seen by every handle.
//! A dict holds an immutable table. Readers take the table and look things up without a lock; a
//! change finds its place so too, then replaces the table, or changes it in place when it is the
//! dict's alone.
//! Header section: `kTVMFFIDict`; what is inside is this crate's own.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::key::{self, PlainKey};
use super::map::Map;
use super::table::Table;
use crate::abi::TypeIndex;
use crate::any::{Any, ToAnyView};
use crate::error::{Result, object_wrapper};
use crate::heap::{ObjectRef, marked};

/// A map from keys to values that changes, `ffi.Dict`, in the order of insertion. Clones are
/// handles to the same dict. Keys are those of a [`Map`].
///
/// Methods hand out values, not references to them: another handle may remove those at any time.
#[derive(Clone)]
#[repr(transparent)]
pub struct Dict(ObjectRef);

object_wrapper!(Dict, TypeIndex::DICT, marked::is_marked);

impl Dict {
    /// A dict of these entries; a later one of the same key wins and keeps the earlier one's place.
    ///
    /// # Errors
    /// The error of a key's `__any_hash__` or `__any_equal__`.
    pub fn try_from_entries<K: Into<Any>, V: Into<Any>>(entries: impl IntoIterator<Item = (K, V)>) -> Result<Self> {
        Table::try_from_entries(entries).map(|table| Self::from_table(Arc::new(table)))
    }

    fn from_table(table: Arc<Table>) -> Self {
        Self(marked::new::<_, { TypeIndex::DICT.0 }>(Mutex::new(table)))
    }

    /// Locks the table. Whoever holds the lock must drop no value and run no user's code.
    fn lock(&self) -> MutexGuard<'_, Arc<Table>> {
        // SAFETY: a `Dict` is made from marked objects only, whose body is this one.
        let table: &Mutex<Arc<Table>> = unsafe { marked::body_of(&self.0) };
        table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn snapshot(&self) -> Arc<Table> {
        self.lock().clone()
    }

    /// Runs `change` on the table with the place and hash of `key`. Its result is dropped by the
    /// caller, when the lock is free again.
    fn change<R>(&self, key: &Any, change: impl FnOnce(&mut Table, Option<usize>, u64) -> R) -> Result<R> {
        let hash = key::hash(key)?;
        loop {
            let snapshot = self.snapshot();
            let place = snapshot.find(key, hash)?;
            let mut table = self.lock();
            // A change since then made another table, since this one is shared with `snapshot`.
            if Arc::ptr_eq(&table, &snapshot) {
                drop(snapshot);
                return Ok(change(Arc::make_mut(&mut table), place, hash));
            }
        }
    }

    /// Number of entries at this moment.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether there are no entries at this moment.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn get<K: ToAnyView + ?Sized>(&self, key: &K) -> Result<Option<Any>> {
        let key = key.to_arg().as_view().to_owned()?;
        Ok(self.snapshot().get(&key)?.cloned())
    }

    /// Whether there is an entry of `key`.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn contains_key<K: ToAnyView + ?Sized>(&self, key: &K) -> Result<bool> {
        self.get(key).map(|value| value.is_some())
    }

    /// Sets the value of `key` and hands the old one out. A new key comes last; one that is there
    /// keeps its place.
    ///
    /// # Errors
    /// The error of the key's `__any_hash__` or `__any_equal__`; nothing is changed then.
    pub fn insert(&self, key: impl Into<Any>, value: impl Into<Any>) -> Result<Option<Any>> {
        let (key, value) = (key.into(), value.into());
        let entry = key.clone();
        let left_over = self.change(&key, |table, place, hash| table.put(place, hash, entry, value))?;
        Ok(left_over.map(|(_, old)| old))
    }

    /// Removes the entry of `key` and hands its value out. Takes time in proportion to the number
    /// of entries behind it.
    ///
    /// # Errors
    /// As [`Map::get`]; nothing is changed then.
    pub fn remove<K: ToAnyView + ?Sized>(&self, key: &K) -> Result<Option<Any>> {
        let key = key.to_arg().as_view().to_owned()?;
        let removed = self.change(&key, |table, place, _| place.and_then(|place| table.remove(place)))?;
        Ok(removed.map(|(_, value)| value))
    }

    /// Removes all entries.
    pub fn clear(&self) {
        let old = std::mem::take(&mut *self.lock());
        drop(old);
    }

    /// The entries as they are at this moment. They are not copied: a later change of the dict
    /// copies them when the map is still there.
    pub fn to_map(&self) -> Map {
        Map::from_table(self.snapshot())
    }
}

impl From<&Map> for Dict {
    /// A dict of the map's entries, which are copied at the first change.
    fn from(map: &Map) -> Self {
        Self::from_table(map.table().clone())
    }
}

/// Iterator over the entries of a [`Dict`] as they are when the iteration begins.
#[derive(Debug)]
pub struct DictIter {
    map: Map,
    place: usize,
}

impl Iterator for DictIter {
    type Item = (Any, Any);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.map.entry(self.place)?;
        self.place += 1;
        Some((key.clone(), value.clone()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.map.len() - self.place;
        (left, Some(left))
    }
}

impl ExactSizeIterator for DictIter {}

impl IntoIterator for &Dict {
    type Item = (Any, Any);
    type IntoIter = DictIter;

    fn into_iter(self) -> DictIter {
        DictIter { map: self.to_map(), place: 0 }
    }
}

impl<K: PlainKey, V: Into<Any>> FromIterator<(K, V)> for Dict {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self::from_table(Arc::new(Table::from_plain_entries(entries)))
    }
}

impl Default for Dict {
    fn default() -> Self {
        Self::from_table(Arc::default())
    }
}

impl fmt::Debug for Dict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_map().fmt(f)
    }
}
