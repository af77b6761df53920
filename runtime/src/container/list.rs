//! Lists: mutable sequences. Every handle sees the changes.
//! Layout: header, `TVMFFISeqCell`; the elements are in a growable block.
//! Header sections: `kTVMFFIList`, `TVMFFISeqCell`.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::slice;

use super::lock::{Guard, lock};
use super::seq;
use crate::abi::{TVMFFISeqCell, TypeIndex};
use crate::any::Any;
use crate::equality;
use crate::error::{Error, Result, index_error, kind, object_wrapper, range_error};
use crate::heap::ObjectRef;

/// A mutable sequence, `ffi.List`. Clones are handles to the same list.
///
/// Methods return elements, not references to them, because another handle may remove the elements at any time. A list
/// of a [`ContainerItem`](super::ContainerItem) type accepts only elements of that type. It checks what it reads,
/// because other handles may have stored anything.
#[repr(transparent)]
pub struct List<T = Any>(pub(super) ObjectRef, pub(super) PhantomData<fn() -> T>);

object_wrapper!(List[PhantomData], TypeIndex::LIST);

/// A list's cell, locked for this thread.
///
/// The cell is a pointer. A reference would have to stay valid until the function that drops the guard returns, but
/// another thread may take the lock before that.
struct Locked<'a> {
    cell: NonNull<TVMFFISeqCell>,
    list: PhantomData<&'a List>,
    _guard: Guard,
}

impl Locked<'_> {
    fn cell(&mut self) -> &mut TVMFFISeqCell {
        // SAFETY: the cell lives as long as the list, and only this thread accesses it while `self` is borrowed.
        unsafe { self.cell.as_mut() }
    }

    fn values(&self) -> &[Any] {
        // SAFETY: as in `cell`; nothing changes the cell while `self` is borrowed.
        unsafe { seq::values_of(self.cell.as_ref()) }
    }

    fn len(&self) -> usize {
        self.values().len()
    }

    /// As [`seq::splice`]. The caller drops the result and the rest of `new` after `self`, so that destructors run with
    /// the list unlocked.
    fn splice(&mut self, range: Range<usize>, new: &mut [Any]) -> Vec<Any> {
        let (start, end) = (range.start.min(self.len()), range.end.min(self.len()));
        // SAFETY: only this thread accesses the cell; the bounds are clamped to the list's length.
        unsafe { seq::splice(self.cell(), start, end.max(start), new) }
    }
}

impl List {
    /// An empty list of elements of any type.
    ///
    /// ```
    /// use tvm_ffi_runtime::List;
    ///
    /// let list = List::new();
    /// list.push(1);
    /// list.push("two");
    /// assert_eq!(list.len(), 2);
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// A list of up to `count` elements, constructed in place.
    ///
    /// # Errors
    /// The first error of an element.
    pub(super) fn try_from_values(count: usize, values: impl Iterator<Item = Result<Any>>) -> Result<Self> {
        seq::try_new_with_block::<{ TypeIndex::LIST.0 }, _>(count, values).map(|object| Self(object, PhantomData))
    }

    fn lock(&self) -> Locked<'_> {
        let guard = lock(&self.0);
        // All Rust code accesses the cell under this lock; C code must keep out, as the module's documentation
        // requires.
        Locked { cell: seq::cell_of(&self.0), list: PhantomData, _guard: guard }
    }

    /// Number of elements at this moment.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// True if the list has no elements at this moment.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at `index`.
    pub fn get(&self, index: usize) -> Option<Any> {
        self.lock().values().get(index).cloned()
    }

    /// All elements as they are at this moment.
    pub fn to_vec(&self) -> Vec<Any> {
        self.lock().values().to_vec()
    }

    /// True if some element equals `value`, with the equality of [`Map`](super::Map) keys.
    ///
    /// # Errors
    /// The error of an `__any_equal__` attribute of an element's type.
    pub fn contains(&self, value: &Any) -> Result<bool> {
        equality::contains(&self.to_vec(), value.into())
    }

    /// Adds an element at the end.
    pub fn push(&self, value: impl Into<Any>) {
        let mut value = value.into();
        let mut list = self.lock();
        let len = list.len();
        list.splice(len..len, slice::from_mut(&mut value));
    }

    /// Appends elements in one step, so they are adjacent.
    pub fn extend<T: Into<Any>>(&self, values: impl IntoIterator<Item = T>) {
        let mut values = collect(values);
        let mut list = self.lock();
        let len = list.len();
        list.splice(len..len, &mut values);
    }

    /// Replaces the element at `index`.
    ///
    /// # Errors
    /// `IndexError` when there is no such element.
    pub fn set(&self, index: usize, value: impl Into<Any>) -> Result<()> {
        self.replace(index..index.saturating_add(1), [value], |len| index_error(index, len))
    }

    /// Adds an element before the one at `index`, or at the end.
    ///
    /// # Errors
    /// `IndexError` when `index` is beyond the end.
    pub fn insert(&self, index: usize, value: impl Into<Any>) -> Result<()> {
        self.replace(index..index, [value], |len| index_error(index, format_args!("[0, {len}]")))
    }

    /// Removes and returns the element at `index`.
    ///
    /// # Errors
    /// `IndexError` when there is no such element.
    pub fn remove(&self, index: usize) -> Result<Any> {
        let mut list = self.lock();
        let len = list.len();
        let removed = if index < len { list.splice(index..index + 1, &mut []).pop() } else { None };
        drop(list);
        removed.ok_or_else(|| index_error(index, len))
    }

    /// Removes and returns the last element.
    pub fn pop(&self) -> Option<Any> {
        let mut list = self.lock();
        let len = list.len();
        list.splice(len.saturating_sub(1)..len, &mut []).pop()
    }

    /// Replaces the elements in `range` with `values`.
    ///
    /// # Errors
    /// `IndexError` when the range ends before its start or extends past the list's end.
    pub fn replace_range<T: Into<Any>>(&self, range: Range<usize>, values: impl IntoIterator<Item = T>) -> Result<()> {
        self.replace(range.clone(), values, |len| range_error(range.start, range.end, len))
    }

    /// As [`List::replace_range`]; `error` builds the error from the list's length.
    fn replace<T: Into<Any>>(
        &self,
        range: Range<usize>,
        values: impl IntoIterator<Item = T>,
        error: impl FnOnce(usize) -> Error,
    ) -> Result<()> {
        let mut values = collect(values);
        let mut list = self.lock();
        let len = list.len();
        if range.start > range.end || range.end > len {
            drop(list);
            return Err(error(len));
        }
        let old = list.splice(range, &mut values);
        drop(list);
        drop(old);
        Ok(())
    }

    /// Reverses the order of the elements.
    pub fn reverse(&self) {
        let mut list = self.lock();
        let len = list.len();
        if len > 0 {
            // SAFETY: only this thread accesses the cell's elements while `list` lives.
            unsafe { slice::from_raw_parts_mut(list.cell().data.cast::<Any>(), len) }.reverse();
        }
    }

    /// Removes all elements.
    pub fn clear(&self) {
        let old = self.lock().splice(0..usize::MAX, &mut []);
        drop(old);
    }

    /// Makes room for `capacity` elements in total.
    ///
    /// # Errors
    /// `MemoryError` when out of memory.
    pub fn reserve(&self, capacity: usize) -> Result<()> {
        let mut list = self.lock();
        // SAFETY: only this thread accesses the cell while `list` lives.
        if unsafe { seq::reserve(list.cell(), capacity) } {
            return Ok(());
        }
        drop(list);
        Err(Error::new(kind::MEMORY_ERROR, &format!("no memory for a list of {capacity} elements")))
    }
}

/// Collects the values before the list is locked, because iterators and conversions are the caller's code.
fn collect<T: Into<Any>>(values: impl IntoIterator<Item = T>) -> Vec<Any> {
    values.into_iter().map(T::into).collect()
}

impl From<Vec<Any>> for List {
    fn from(values: Vec<Any>) -> Self {
        Self(seq::new_with_block::<{ TypeIndex::LIST.0 }>(values), PhantomData)
    }
}

impl<T: Into<Any>> FromIterator<T> for List {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        collect(values).into()
    }
}

impl Default for List {
    fn default() -> Self {
        Vec::new().into()
    }
}

/// Iterates over the elements as they are when the iteration begins.
impl IntoIterator for &List {
    type Item = Any;
    type IntoIter = std::vec::IntoIter<Any>;

    fn into_iter(self) -> Self::IntoIter {
        self.to_vec().into_iter()
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_vec(), f)
    }
}
