//! Maps: immutable, iterated in insertion order.
//! Layout: upstream's `MapBaseObj`, in `table`. C++ code creates maps too, and changes a map to which it holds the one
//! reference.
//! Header section: `kTVMFFIMap`.

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;

use super::plain_key::PlainKey;
use super::table::{COPY_CAPACITY, KeyValue, Position, Table, new_object};
use crate::abi::TypeIndex;
use crate::any::{Any, ToAnyView};
use crate::equality::Key;
use crate::error::{Result, object_wrapper};
use crate::heap::ObjectRef;

/// An immutable map from keys to values, `ffi.Map`, in insertion order.
///
/// Keys can be any values. Strings and bytes are compared by content. Other values are compared by type and bits, so
/// `1`, `true` and `1.0` are three keys and an object equals only itself. A type can define its own comparison with the
/// attributes `__any_hash__` and `__any_equal__`. Methods that look up a key return the errors that this code raises.
///
/// A map whose keys have a [`ContainerItem`](super::ContainerItem) type was checked when the handle was made, and
/// returns entries of its types.
#[repr(transparent)]
pub struct Map<K = Any, V = Any>(pub(super) ObjectRef, pub(super) PhantomData<fn() -> (K, V)>);

object_wrapper!(Map[PhantomData], TypeIndex::MAP);

/// Inserts an entry into the table of a new map or dict, or sets the value of an existing key. No other code has the
/// object yet, and `capacity` is the expected number of entries.
///
/// # Errors
/// The error of a key's `__any_hash__` or `__any_equal__`.
fn put(table: Table, capacity: usize, key: Any, value: Any) -> Result<()> {
    let (borrowed, mut hash) = (Key::from(&key), None);
    // SAFETY: only this function has the table; the user code that it runs has no access to it.
    unsafe {
        let own_hash = || borrowed.hash().inspect(|own| hash = Some(*own));
        if let Some(place) = table.find(own_hash, |candidate| borrowed.equals(candidate))? {
            drop(table.replace(place, value));
            return Ok(());
        }
        let mut entry = KeyValue { key, value };
        loop {
            let known = match hash {
                None if table.uses_hashes() => Key::from(&entry.key).hash()?,
                known => known.unwrap_or(0),
            };
            hash = Some(known).filter(|_| table.uses_hashes());
            match table.insert(known, entry) {
                Ok(()) => return Ok(()),
                Err(back) => entry = back,
            }
            drop(table.grow(capacity, |key| Key::from(key).hash())?);
        }
    }
}

/// A new map or dict of these entries. If a key occurs more than once, the last entry wins.
///
/// # Errors
/// The error of a key's `__any_hash__` or `__any_equal__`.
pub(super) fn try_new<const INDEX: i32, K: Into<Any>, V: Into<Any>>(
    entries: impl IntoIterator<Item = (K, V)>,
) -> Result<ObjectRef> {
    try_new_of_results::<INDEX>(entries.into_iter().map(|(key, value)| Ok((key.into(), value.into()))))
}

/// As [`try_new`], from entries that may be errors.
///
/// # Errors
/// The first error among the entries, or as [`try_new`].
pub(super) fn try_new_of_results<const INDEX: i32>(
    entries: impl Iterator<Item = Result<(Any, Any)>>,
) -> Result<ObjectRef> {
    // An iterator's size hint may exceed the available memory.
    let capacity = entries.size_hint().0.min(1 << 16);
    let object = new_object::<INDEX>(capacity);
    for entry in entries {
        let (key, value) = entry?;
        put(Table::of(&object), capacity, key, value)?;
    }
    Ok(object)
}

/// As [`try_new`], for keys that are hashed without user code.
pub(super) fn new<const INDEX: i32, K: PlainKey, V: Into<Any>>(entries: impl IntoIterator<Item = (K, V)>) -> ObjectRef {
    // With plain keys, nothing fails.
    try_new::<INDEX, K, V>(entries).unwrap_or_else(|_| new_object::<INDEX>(0))
}

impl Map {
    /// A map of these entries. If a key occurs more than once, the last entry wins.
    ///
    /// # Errors
    /// The error of a key's `__any_hash__` or `__any_equal__`.
    pub fn try_from_entries<K: Into<Any>, V: Into<Any>>(entries: impl IntoIterator<Item = (K, V)>) -> Result<Self> {
        try_new::<{ TypeIndex::MAP.0 }, _, _>(entries).map(|object| Self(object, PhantomData))
    }

    /// An empty map for [`Table::copy_to`].
    pub(super) fn for_copy() -> Self {
        Self(new_object::<{ TypeIndex::MAP.0 }>(COPY_CAPACITY), PhantomData)
    }

    /// The table, which doesn't change: C++ code changes a map only if it holds the one reference to it.
    pub(super) fn table(&self) -> Table {
        Table::of(&self.0)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        // SAFETY: the map is alive, and doesn't change.
        unsafe { self.table().len() }
    }

    /// True if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// The error of the key's `__any_hash__` or `__any_equal__`; `RuntimeError` for a key that cannot be owned (see
    /// [`AnyView::to_owned`](crate::AnyView::to_owned)).
    pub fn get<K: ToAnyView + ?Sized>(&self, key: &K) -> Result<Option<&Any>> {
        let arg = key.to_arg();
        let view = arg.as_view();
        let key = Key::of_view(&view)?;
        // SAFETY: the map is alive as long as `self` is borrowed, and doesn't change.
        unsafe {
            let place = self.table().find(|| key.hash(), |candidate| key.equals(candidate))?;
            Ok(place.map(|place| &self.table().entry(place).value))
        }
    }

    /// True if the map has an entry for `key`.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn contains_key<K: ToAnyView + ?Sized>(&self, key: &K) -> Result<bool> {
        self.get(key).map(|value| value.is_some())
    }

    /// The entry at an index in insertion order. In a map of more than four entries this takes time proportional to the
    /// index.
    pub fn entry(&self, place: usize) -> Option<(&Any, &Any)> {
        self.iter().nth(place)
    }

    /// The entries, in insertion order.
    pub fn iter(&self) -> MapIter<'_> {
        // SAFETY: the map is alive, and doesn't change.
        let (ends, left) = unsafe { (self.table().ends(), self.len()) };
        let (front, back) = ends.unwrap_or_default();
        MapIter { map: self, front, back, left }
    }

    /// The keys, in insertion order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Any> {
        self.iter().map(|(key, _)| key)
    }

    /// The values, in insertion order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Any> {
        self.iter().map(|(_, value)| value)
    }
}

/// Iterator over the entries of a [`Map`].
#[derive(Clone)]
pub struct MapIter<'a> {
    map: &'a Map,
    /// The places of the next entry from either end, valid while entries are left.
    front: Position,
    back: Position,
    left: usize,
}

impl<'a> MapIter<'a> {
    /// Returns the entry at one end and moves that end past it.
    fn take(
        &mut self,
        end: fn(&mut Self) -> &mut Position,
        step: unsafe fn(Table, Position) -> Option<Position>,
    ) -> Option<(&'a Any, &'a Any)> {
        self.left = self.left.checked_sub(1)?;
        let place = *end(self);
        // SAFETY: the map is alive for `'a` and doesn't change; at least one entry is left, so the place is that of an
        // entry.
        unsafe {
            if let Some(further) = step(self.map.table(), place) {
                *end(self) = further;
            }
            let KeyValue { key, value } = self.map.table().entry(place);
            Some((key, value))
        }
    }
}

impl<'a> Iterator for MapIter<'a> {
    type Item = (&'a Any, &'a Any);

    fn next(&mut self) -> Option<Self::Item> {
        self.take(|iter| &mut iter.front, Table::next)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl DoubleEndedIterator for MapIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.take(|iter| &mut iter.back, Table::previous)
    }
}

impl ExactSizeIterator for MapIter<'_> {}

impl FusedIterator for MapIter<'_> {}

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
        Self(new::<{ TypeIndex::MAP.0 }, K, V>(entries), PhantomData)
    }
}

impl Default for Map {
    fn default() -> Self {
        Self(new_object::<{ TypeIndex::MAP.0 }>(0), PhantomData)
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().fmt(f)
    }
}
