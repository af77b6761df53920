//! Maps: immutable, iterated in the order of insertion.
//! The header fixes only the type index; what is inside is this crate's own.
//! Header section: `kTVMFFIMap`.

use std::fmt;
use std::sync::Arc;

use super::key::PlainKey;
use super::table::Table;
use crate::abi::TypeIndex;
use crate::any::{Any, ToAnyView};
use crate::error::{Result, object_wrapper};
use crate::heap::{ObjectRef, marked};

/// An immutable map from keys to values, `ffi.Map`, in the order of insertion.
///
/// Keys are any values. Strings and bytes are compared by content; other values by type and bits,
/// so that `1`, `true` and `1.0` are three keys and an object equals itself only. A type may bring
/// its own comparison in the attributes `__any_hash__` and `__any_equal__`; methods that look for
/// a key return the error that such code raises.
#[derive(Clone)]
#[repr(transparent)]
pub struct Map(ObjectRef);

object_wrapper!(Map, TypeIndex::MAP, marked::is_marked);

impl Map {
    /// A map of these entries; a later one of the same key wins and keeps the earlier one's place.
    ///
    /// # Errors
    /// The error of a key's `__any_hash__` or `__any_equal__`.
    pub fn try_from_entries<K: Into<Any>, V: Into<Any>>(entries: impl IntoIterator<Item = (K, V)>) -> Result<Self> {
        Table::try_from_entries(entries).map(|table| Self::from_table(Arc::new(table)))
    }

    pub(super) fn from_table(table: Arc<Table>) -> Self {
        Self(marked::new::<_, { TypeIndex::MAP.0 }>(table))
    }

    pub(super) fn table(&self) -> &Arc<Table> {
        // SAFETY: a `Map` is made from marked objects only, whose body is this one.
        unsafe { marked::body_of(&self.0) }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.table().len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// The error of the key's `__any_hash__` or `__any_equal__`; `RuntimeError` for a key that
    /// cannot be owned (see [`AnyView::to_owned`](crate::AnyView::to_owned)).
    pub fn get<K: ToAnyView + ?Sized>(&self, key: &K) -> Result<Option<&Any>> {
        let key = key.to_arg().as_view().to_owned()?;
        self.table().get(&key)
    }

    /// Whether there is an entry of `key`.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn contains_key<K: ToAnyView + ?Sized>(&self, key: &K) -> Result<bool> {
        self.get(key).map(|value| value.is_some())
    }

    /// The entry at a place in the order of insertion.
    pub fn entry(&self, place: usize) -> Option<(&Any, &Any)> {
        self.table().entry(place)
    }

    /// The entries, in the order of insertion.
    pub fn iter(&self) -> MapIter<'_> {
        MapIter(self.table().iter())
    }

    /// The keys, in the order of insertion.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Any> {
        self.iter().map(|(key, _)| key)
    }

    /// The values, in the order of insertion.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Any> {
        self.iter().map(|(_, value)| value)
    }
}

/// Iterator over the entries of a [`Map`].
#[derive(Clone)]
pub struct MapIter<'a>(indexmap::map::Iter<'a, Any, Any>);

impl<'a> Iterator for MapIter<'a> {
    type Item = (&'a Any, &'a Any);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for MapIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back()
    }
}

impl ExactSizeIterator for MapIter<'_> {}

impl fmt::Debug for MapIter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.clone()).finish()
    }
}

impl<'a> IntoIterator for &'a Map {
    type Item = (&'a Any, &'a Any);
    type IntoIter = MapIter<'a>;

    fn into_iter(self) -> MapIter<'a> {
        self.iter()
    }
}

impl<K: PlainKey, V: Into<Any>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self::from_table(Arc::new(Table::from_plain_entries(entries)))
    }
}

impl Default for Map {
    fn default() -> Self {
        Self::from_table(Arc::default())
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().fmt(f)
    }
}
