//! A hash table in the order of insertion, with keys that are equal by the rules of `key`.
//! Setting a key that is there keeps its place. Upstream's dicts do so up to four entries and move
//! it to the end in larger ones.
//! No header section: the inside of maps is not part of the ABI.

use indexmap::IndexMap;
use indexmap::map::raw_entry_v1::{RawEntryApiV1, RawEntryMut};

use super::key::{self, PlainKey};
use crate::any::Any;
use crate::error::Result;
use crate::heap::release;

#[derive(Clone, Default)]
pub(super) struct Table {
    // Hashes are passed in: making one may fail.
    entries: IndexMap<Any, Any, ()>,
}

impl Table {
    pub(super) fn try_from_entries<K: Into<Any>, V: Into<Any>>(
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self> {
        let mut table = Self::default();
        for (key, value) in entries {
            let key = key.into();
            let hash = key::hash(&key)?;
            let place = table.find(&key, hash)?;
            table.put(place, hash, key, value.into());
        }
        Ok(table)
    }

    pub(super) fn from_plain_entries<K: PlainKey, V: Into<Any>>(entries: impl IntoIterator<Item = (K, V)>) -> Self {
        let mut table = Self::default();
        for (key, value) in entries {
            let key = key.into();
            let hash = key::plain_hash(&key);
            let place = table.find_by(hash, |candidate| key::plain_equal(candidate, &key));
            table.put(place, hash, key, value.into());
        }
        table
    }

    fn find_by(&self, hash: u64, is_match: impl FnMut(&Any) -> bool) -> Option<usize> {
        self.entries.raw_entry_v1().index_from_hash(hash, is_match)
    }

    /// The place of a key with that hash.
    ///
    /// # Errors
    /// As [`key::equal`].
    pub(super) fn find(&self, key: &Any, hash: u64) -> Result<Option<usize>> {
        let mut failure = None;
        let place = self.find_by(hash, |candidate| {
            key::equal(candidate, key).unwrap_or_else(|error| {
                failure = Some(error);
                // Ends the search.
                true
            })
        });
        match failure {
            Some(error) => Err(error),
            None => Ok(place),
        }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// As [`key::hash`] and [`key::equal`].
    pub(super) fn get(&self, key: &Any) -> Result<Option<&Any>> {
        let place = self.find(key, key::hash(key)?)?;
        Ok(place.and_then(|place| self.entry(place)).map(|(_, value)| value))
    }

    /// Sets the value at the place that [`Table::find`] gave, or adds an entry. What is left over,
    /// the key and the old value, is handed out.
    pub(super) fn put(&mut self, place: Option<usize>, hash: u64, key: Any, value: Any) -> Option<(Any, Any)> {
        if let Some((_, old)) = place.and_then(|place| self.entries.get_index_mut(place)) {
            return Some((key, std::mem::replace(old, value)));
        }
        match self.entries.raw_entry_mut_v1().from_hash(hash, |_| false) {
            RawEntryMut::Vacant(entry) => {
                entry.insert_hashed_nocheck(hash, key, value);
                None
            }
            // Never, since nothing matches.
            RawEntryMut::Occupied(_) => Some((key, value)),
        }
    }

    /// Takes an entry out; later ones move up, which takes time in proportion to their number.
    pub(super) fn remove(&mut self, place: usize) -> Option<(Any, Any)> {
        self.entries.shift_remove_index(place)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn entry(&self, place: usize) -> Option<(&Any, &Any)> {
        self.entries.get_index(place)
    }

    pub(super) fn iter(&self) -> indexmap::map::Iter<'_, Any, Any> {
        self.entries.iter()
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        release(
            std::mem::take(&mut self.entries)
                .into_iter()
                .flat_map(|(key, value)| [key, value])
                .filter_map(Any::into_object),
        );
    }
}
