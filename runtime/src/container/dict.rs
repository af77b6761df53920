//! Dicts: mutable maps. Every handle sees the changes.
//! Layout: upstream's `MapBaseObj`, in `table`. C++ code creates and changes dicts too.
//!
//! Each change to a dict is one step under its lock, and no user code runs within it. When a type's attributes hash or
//! compare keys, the step ends with a question. The question is answered without the lock, and then the step starts
//! again with the answer.
//! Header section: `kTVMFFIDict`.

use std::cell::Cell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;

use super::lock::{Guard, lock};
use super::map::{self, Map};
use super::plain_key::PlainKey;
use super::table::{KeyValue, Position, Table, new_object};
use crate::abi::TypeIndex;
use crate::any::{Any, ToAnyView};
use crate::equality::{Key, Verdict};
use crate::error::{Result, object_wrapper};
use crate::heap::ObjectRef;

/// A mutable map from keys to values, `ffi.Dict`, in insertion order. Clones are handles to the same dict. Keys follow
/// the same rules as those of a [`Map`].
///
/// As upstream, setting an existing key keeps its position in a dict of up to four entries. In a dict that has ever
/// held more, the entry moves to the end.
///
/// Methods return values, not references to them, because another handle may remove the values at any time. A dict
/// whose keys have a [`ContainerItem`](super::ContainerItem) type accepts only entries of its types. It checks what it
/// reads, because other handles may have stored anything.
#[repr(transparent)]
pub struct Dict<K = Any, V = Any>(pub(super) ObjectRef, pub(super) PhantomData<fn() -> (K, V)>);

object_wrapper!(Dict[PhantomData], TypeIndex::DICT);

/// A dict's table, locked for this thread.
///
/// The table is a pointer. A reference would have to stay valid until the function that drops the guard returns, but
/// another thread may take the lock before that.
struct Locked<'a> {
    table: Table,
    dict: PhantomData<&'a Dict>,
    _guard: Guard,
}

impl Locked<'_> {
    /// The place of a [plain](Key::is_plain) key.
    #[inline]
    fn find_plain(&self, key: &Key<'_>) -> Option<Position> {
        let hash = || Ok::<_, Infallible>(key.plain_hash().unwrap_or_default());
        // SAFETY: only this thread accesses the table while it is locked.
        let Ok(place) = unsafe { self.table.find(hash, |other| Ok(matches!(key.compare(other), Verdict::Equal))) };
        place
    }
}

/// A question that user code must answer before the dict can make its next step.
enum Question {
    /// The hash of the key being looked up.
    OwnHash,
    /// The hash of a key in the dict.
    Hash(Any),
    /// A comparison of a key in the dict with the key being looked up.
    Equal(Any),
}

/// The results of users' hash and equality functions during one change of a dict. Keys of the dict are identified by
/// their addresses. They are kept alive so that no other key gets the same address.
struct Answers<'a> {
    key: Key<'a>,
    own_hash: Cell<Option<u64>>,
    hashes: Option<HashMap<usize, (Any, u64)>>,
    equal: Option<HashMap<usize, (Any, bool)>>,
}

fn address(key: &Any) -> usize {
    key.as_raw().ptr().addr()
}

impl<'a> Answers<'a> {
    fn new(key: Key<'a>) -> Self {
        Self { key, own_hash: Cell::new(None), hashes: None, equal: None }
    }

    fn own_hash(&self) -> Result<u64, Question> {
        // Computed on demand: the small form never needs it.
        let hash = self.own_hash.get().or_else(|| self.key.plain_hash());
        self.own_hash.set(hash);
        hash.ok_or(Question::OwnHash)
    }

    fn hash(&self, key: &Any) -> Result<u64, Question> {
        let known = || self.hashes.as_ref()?.get(&address(key)).map(|(_, hash)| *hash);
        Key::from(key).plain_hash().or_else(known).ok_or_else(|| Question::Hash(key.clone()))
    }

    fn is_equal(&self, key: &Any) -> Result<bool, Question> {
        match self.key.compare(key) {
            Verdict::Equal => Ok(true),
            Verdict::Different => Ok(false),
            Verdict::Ask => match self.equal.as_ref().and_then(|equal| equal.get(&address(key))) {
                Some((_, is_equal)) => Ok(*is_equal),
                None => Err(Question::Equal(key.clone())),
            },
        }
    }

    fn find(&self, table: &Locked<'_>) -> Result<Option<Position>, Question> {
        // SAFETY: only this thread accesses the table while it is locked.
        unsafe { table.table.find(|| self.own_hash(), |key| self.is_equal(key)) }
    }

    /// Runs the user code that answers a question. The caller must hold no lock.
    ///
    /// # Errors
    /// The error that the user code raises.
    fn answer(&mut self, question: Question) -> Result<()> {
        match question {
            Question::OwnHash => self.own_hash.set(Some(self.key.hash()?)),
            Question::Hash(key) => {
                let hash = Key::from(&key).hash()?;
                self.hashes.get_or_insert_default().insert(address(&key), (key, hash));
            }
            Question::Equal(key) => {
                let is_equal = self.key.ask(&key)?;
                self.equal.get_or_insert_default().insert(address(&key), (key, is_equal));
            }
        }
        Ok(())
    }
}

impl Dict {
    /// An empty dict of entries of any types.
    ///
    /// ```
    /// use tvm_ffi_runtime::Dict;
    ///
    /// let dict = Dict::new();
    /// dict.insert("one", 1)?;
    /// dict.insert(2, "two")?;
    /// assert_eq!(dict.len(), 2);
    /// # Ok::<(), tvm_ffi_runtime::Error>(())
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// A dict of these entries. If a key occurs more than once, the last entry wins.
    ///
    /// # Errors
    /// The error of a key's `__any_hash__` or `__any_equal__`.
    pub fn try_from_entries<K: Into<Any>, V: Into<Any>>(entries: impl IntoIterator<Item = (K, V)>) -> Result<Self> {
        map::try_new::<{ TypeIndex::DICT.0 }, _, _>(entries).map(|object| Self(object, PhantomData))
    }

    /// Locks the dict. While holding the lock, the caller must drop no value and run no user code.
    fn lock(&self) -> Locked<'_> {
        let guard = lock(&self.0);
        // All Rust code accesses the table under this lock; C++ code must keep out, as the module's documentation
        // requires.
        Locked { table: Table::of(&self.0), dict: PhantomData, _guard: guard }
    }

    /// Runs a step under the lock and repeats it until it has no question.
    ///
    /// # Errors
    /// The error raised by the user code that answers the questions.
    fn step<R>(
        &self,
        key: Key<'_>,
        mut step: impl FnMut(Locked<'_>, &Answers<'_>) -> Result<R, Question>,
    ) -> Result<R> {
        let mut answers = Answers::new(key);
        loop {
            // The step takes the guard, so the lock is released when the step returns.
            match step(self.lock(), &answers) {
                Ok(outcome) => return Ok(outcome),
                Err(question) => answers.answer(question)?,
            }
        }
    }

    /// Number of entries at this moment.
    pub fn len(&self) -> usize {
        let locked = self.lock();
        // SAFETY: only this thread accesses the table while it is locked.
        unsafe { locked.table.len() }
    }

    /// True if there are no entries at this moment.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn get<K: ToAnyView + ?Sized>(&self, key: &K) -> Result<Option<Any>> {
        let arg = key.to_arg();
        let view = arg.as_view();
        if Key::is_plain(view.type_index()) {
            let key = Key::of_plain(&view);
            let locked = self.lock();
            // SAFETY: only this thread accesses the table while it is locked.
            return Ok(locked.find_plain(&key).map(|place| unsafe { locked.table.entry(place) }.value.clone()));
        }
        self.step(Key::of_view(&view)?, |locked, answers| {
            let place = answers.find(&locked)?;
            // SAFETY: only this thread accesses the table while it is locked.
            Ok(place.map(|place| unsafe { locked.table.entry(place) }.value.clone()))
        })
    }

    /// True if the dict has an entry for `key`.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn contains_key<K: ToAnyView + ?Sized>(&self, key: &K) -> Result<bool> {
        let arg = key.to_arg();
        let view = arg.as_view();
        if Key::is_plain(view.type_index()) {
            let key = Key::of_plain(&view);
            return Ok(self.lock().find_plain(&key).is_some());
        }
        self.step(Key::of_view(&view)?, |locked, answers| answers.find(&locked).map(|place| place.is_some()))
    }

    /// Sets the value of `key` and returns the old value. A new key goes to the end.
    ///
    /// # Errors
    /// The error of the `__any_hash__` or `__any_equal__` of this key or another one; nothing is changed then.
    pub fn insert(&self, key: impl Into<Any>, value: impl Into<Any>) -> Result<Option<Any>> {
        let (key, value) = (key.into(), value.into());
        let mut entry = Some(KeyValue { key: key.clone(), value });
        // Blocks that the dict abandons are freed with their own deleters after the lock is released.
        let mut left = Vec::new();
        self.step(Key::from(&key), |locked, answers| {
            let place = answers.find(&locked)?;
            // SAFETY: only this thread accesses the table while it is locked.
            unsafe {
                if let Some(place) = place {
                    let old = entry.as_mut().map(|entry| locked.table.replace(place, std::mem::take(&mut entry.value)));
                    return Ok(old);
                }
                loop {
                    let hash = if locked.table.uses_hashes() { answers.own_hash()? } else { 0 };
                    let Some(new) = entry.take() else { break };
                    let Err(back) = locked.table.insert(hash, new) else { break };
                    entry = Some(back);
                    left.push(locked.table.grow(0, |key| answers.hash(key))?);
                }
            }
            Ok(None)
        })
    }

    /// Removes the entry of `key` and returns its value.
    ///
    /// # Errors
    /// As [`Map::get`]; nothing is changed then.
    pub fn remove<K: ToAnyView + ?Sized>(&self, key: &K) -> Result<Option<Any>> {
        let arg = key.to_arg();
        let view = arg.as_view();
        let removed = self.step(Key::of_view(&view)?, |locked, answers| {
            let place = answers.find(&locked)?;
            // SAFETY: only this thread accesses the table while it is locked.
            Ok(place.map(|place| unsafe { locked.table.remove(place) }))
        })?;
        Ok(removed.map(|entry| entry.value))
    }

    /// Removes all entries.
    pub fn clear(&self) {
        let locked = self.lock();
        // SAFETY: only this thread accesses the table while it is locked.
        let old = unsafe { locked.table.clear() };
        drop(locked);
        drop(old);
    }

    /// A copy of the entries as they are at this moment.
    pub fn to_map(&self) -> Map {
        // Allocated without the lock, because the object allocator may be user code.
        let map = Map::for_copy();
        let locked = self.lock();
        // SAFETY: only this thread accesses the locked table, and no other code has the map yet.
        unsafe { locked.table.copy_to(map.table()) };
        drop(locked);
        map
    }
}

impl From<&Map> for Dict {
    /// A dict of the map's entries.
    fn from(map: &Map) -> Self {
        let dict = Self(new_object::<{ TypeIndex::DICT.0 }>(super::table::COPY_CAPACITY), PhantomData);
        // SAFETY: the map doesn't change, and no other code has the dict yet.
        unsafe { map.table().copy_to(Table::of(&dict.0)) };
        dict
    }
}

/// Iterator over the entries of a [`Dict`] as they are when the iteration begins.
pub struct DictIter {
    map: Map,
    place: Option<Position>,
    left: usize,
}

impl Iterator for DictIter {
    type Item = (Any, Any);

    fn next(&mut self) -> Option<Self::Item> {
        let place = self.place?;
        // SAFETY: the iterator owns the map, and the map doesn't change.
        unsafe {
            self.place = self.map.table().next(place);
            self.left -= 1;
            let KeyValue { key, value } = self.map.table().entry(place);
            Some((key.clone(), value.clone()))
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for DictIter {}

impl fmt::Debug for DictIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DictIter").field("map", &self.map).field("left", &self.left).finish()
    }
}

impl IntoIterator for &Dict {
    type Item = (Any, Any);
    type IntoIter = DictIter;

    fn into_iter(self) -> DictIter {
        let map = self.to_map();
        // SAFETY: the map is new, so no other code has it.
        let place = unsafe { map.table().ends() }.map(|(first, _)| first);
        DictIter { left: map.len(), place, map }
    }
}

impl<K: PlainKey, V: Into<Any>> FromIterator<(K, V)> for Dict {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self(map::new::<{ TypeIndex::DICT.0 }, K, V>(entries), PhantomData)
    }
}

impl Default for Dict {
    fn default() -> Self {
        Self(new_object::<{ TypeIndex::DICT.0 }>(0), PhantomData)
    }
}

impl fmt::Debug for Dict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_map().fmt(f)
    }
}
