//! Lookups and changes in a table, for both forms.
//! Rules: upstream's `MapBaseObj` in `container/map_base.h`.

use std::ffi::c_void;
use std::ptr::NonNull;

use super::dense::{self, Dense};
use super::layout::{Body, DenseBody, KeyValue, MAX_SMALL, NONE, SMALL};
use crate::any::Any;
use crate::container::block::{self, OldBlock};
use crate::heap::ObjectRef;

/// The position of an entry, valid until the next change of its table.
pub(in crate::container) type Position = u64;

/// The table in a map or dict.
///
/// Its functions are unsafe: the object must be alive. For a function that reads, no code may change the table
/// meanwhile; for a function that changes the table, no other code may use it. Places passed as arguments must be those
/// of entries.
#[derive(Copy, Clone)]
pub(in crate::container) struct Table(NonNull<Body>);

impl Table {
    /// The table of a map or dict.
    pub(in crate::container) fn of(object: &ObjectRef) -> Self {
        // SAFETY: the body follows the header within the object, so its address is not NULL.
        unsafe { Self::at(object.as_ptr().add(1).cast()) }
    }

    /// # Safety
    /// The address must not be NULL.
    pub(super) unsafe fn at(body: *mut Body) -> Self {
        // SAFETY: promised by the caller.
        Self(unsafe { NonNull::new_unchecked(body) })
    }

    fn body(self) -> *mut Body {
        self.0.as_ptr()
    }

    unsafe fn is_small(self) -> bool {
        // SAFETY: promised by the caller.
        unsafe { (*self.body()).slots & SMALL != 0 }
    }

    /// The entry at a place in the small form.
    unsafe fn small(self, place: Position) -> *mut KeyValue {
        // SAFETY: promised by the caller.
        unsafe { (*self.body()).data.cast::<KeyValue>().wrapping_add(place as usize) }
    }

    fn dense(self) -> Dense {
        Dense::new(self.0)
    }

    /// Number of entries.
    pub(in crate::container) unsafe fn len(self) -> usize {
        // SAFETY: promised by the caller.
        unsafe { (*self.body()).size as usize }
    }

    /// True if entries are found by hash.
    pub(in crate::container) unsafe fn uses_hashes(self) -> bool {
        // SAFETY: promised by the caller.
        unsafe { !self.is_small() }
    }

    /// The place of a key. The hash is computed only when needed.
    #[inline]
    pub(in crate::container) unsafe fn find<E>(
        self,
        hash: impl FnOnce() -> Result<u64, E>,
        mut is_match: impl FnMut(&Any) -> Result<bool, E>,
    ) -> Result<Option<Position>, E> {
        // SAFETY: promised by the caller.
        unsafe {
            let size = (*self.body()).size;
            if !self.is_small() {
                return if size == 0 { Ok(None) } else { self.dense().find(hash()?, is_match) };
            }
            for place in 0..size {
                if is_match(&(*self.small(place)).key)? {
                    return Ok(Some(place));
                }
            }
        }
        Ok(None)
    }

    /// The entry at a place.
    pub(in crate::container) unsafe fn entry<'a>(self, place: Position) -> &'a KeyValue {
        // SAFETY: promised by the caller, which also chooses the lifetime.
        unsafe { &*self.entry_ptr(place) }
    }

    unsafe fn entry_ptr(self, place: Position) -> *mut KeyValue {
        // SAFETY: promised by the caller.
        unsafe { if self.is_small() { self.small(place) } else { self.dense().entry(place) } }
    }

    /// The places of the first and the last entry in insertion order.
    pub(in crate::container) unsafe fn ends(self) -> Option<(Position, Position)> {
        // SAFETY: promised by the caller.
        unsafe {
            match (*self.body()).size {
                0 => None,
                size if self.is_small() => Some((0, size - 1)),
                _ => Some(self.dense().ends()),
            }
        }
    }

    /// The place of the next entry in insertion order.
    pub(in crate::container) unsafe fn next(self, place: Position) -> Option<Position> {
        // SAFETY: promised by the caller.
        unsafe {
            match self.is_small() {
                true => Some(place + 1).filter(|&next| next < (*self.body()).size),
                false => Some(self.dense().neighbours(place).1).filter(|&next| next != NONE),
            }
        }
    }

    /// The place of the previous entry in insertion order.
    pub(in crate::container) unsafe fn previous(self, place: Position) -> Option<Position> {
        // SAFETY: promised by the caller.
        unsafe {
            match self.is_small() {
                true => place.checked_sub(1),
                false => Some(self.dense().neighbours(place).0).filter(|&previous| previous != NONE),
            }
        }
    }

    /// The places of all entries, in insertion order.
    pub(in crate::container) unsafe fn places(self) -> impl Iterator<Item = Position> {
        // SAFETY: promised by the caller for as long as the iterator is used.
        let first = unsafe { self.ends() }.map(|(first, _)| first);
        // SAFETY: as above.
        std::iter::successors(first, move |&place| unsafe { self.next(place) })
    }

    /// Sets the value of an entry and returns the old one. In the dense form the entry moves to the end.
    pub(in crate::container) unsafe fn replace(self, place: Position, value: Any) -> Any {
        // SAFETY: promised by the caller.
        unsafe {
            if !self.is_small() {
                self.dense().move_back(place);
            }
            std::mem::replace(&mut (*self.entry_ptr(place)).value, value)
        }
    }

    /// True if there is an entry at a place. The place may be any number.
    pub(in crate::container) unsafe fn holds(self, place: Position) -> bool {
        // SAFETY: promised by the caller; a slot's metadata is read only if the table has the slot.
        unsafe {
            match self.is_small() {
                true => place < (*self.body()).size,
                false => place < (*self.body()).slots && self.dense().holds(place),
            }
        }
    }

    /// Sets the value of an entry, which keeps its position, and returns the old one.
    pub(in crate::container) unsafe fn set_value(self, place: Position, value: Any) -> Any {
        // SAFETY: promised by the caller.
        unsafe { std::mem::replace(&mut (*self.entry_ptr(place)).value, value) }
    }

    /// Adds an entry whose key is not in the table. `hash` is the key's hash if the table uses hashes. Returns the
    /// entry if the table must grow first.
    pub(in crate::container) unsafe fn insert(self, hash: u64, entry: KeyValue) -> Result<(), KeyValue> {
        // SAFETY: promised by the caller; the place after the last entry is one of the slots.
        unsafe {
            if !self.is_small() {
                return self.dense().insert(hash, entry);
            }
            let body = self.body();
            if (*body).size >= (*body).slots & !SMALL {
                return Err(entry);
            }
            self.small((*body).size).write(entry);
            (*body).size += 1;
        }
        Ok(())
    }

    /// Makes room for more entries, and computes the hashes of all keys if necessary. When the small form becomes
    /// dense, the new table has room for `capacity` entries. Returns the block that the table no longer uses.
    pub(in crate::container) unsafe fn grow<E>(
        self,
        capacity: usize,
        mut hash: impl FnMut(&Any) -> Result<u64, E>,
    ) -> Result<OldBlock, E> {
        // SAFETY: promised by the caller. The entries move as plain bytes.
        unsafe {
            let (size, slots) = ((*self.body()).size, (*self.body()).slots);
            if self.is_small() && slots & !SMALL < MAX_SMALL {
                let bytes = MAX_SMALL as usize * size_of::<KeyValue>();
                let data = block::allocate(bytes).unwrap_or_else(|| block::out_of_memory(bytes)).cast::<KeyValue>();
                data.as_ptr().copy_from_nonoverlapping(self.small(0), size as usize);
                let old = self.take_block();
                let data = data.as_ptr().cast();
                *self.body() = Body { data, size, slots: MAX_SMALL | SMALL, data_deleter: Some(block::free_block) };
                return Ok(old);
            }
            let mut entries = Vec::with_capacity(size as usize);
            for place in self.places() {
                let entry = self.entry_ptr(place);
                entries.push((hash(&(*entry).key)?, entry.cast_const()));
            }
            // As upstream: the dense form has twice as many slots as the capacity needs, and doubles when it grows.
            let capacity = if self.is_small() { size.max(capacity as u64) } else { slots };
            let grown = dense::build(capacity, &entries);
            let old = self.take_block();
            self.0.cast::<DenseBody>().write(grown);
            Ok(old)
        }
    }

    /// Removes and returns an entry.
    pub(in crate::container) unsafe fn remove(self, place: Position) -> KeyValue {
        // SAFETY: promised by the caller; the entry is moved out once, and the entries after it move up.
        unsafe {
            if !self.is_small() {
                return self.dense().remove(place);
            }
            let entry = self.small(place).read();
            (*self.body()).size -= 1;
            let behind = (*self.body()).size - place;
            self.small(place).copy_from(self.small(place + 1), behind as usize);
            entry
        }
    }

    /// Removes and returns all entries.
    pub(in crate::container) unsafe fn clear(self) -> Vec<KeyValue> {
        // SAFETY: promised by the caller; the entries are moved out once.
        unsafe {
            let entries = self.take_entries().collect();
            match self.is_small() {
                true => (*self.body()).size = 0,
                false => self.dense().forget_all(),
            }
            entries
        }
    }

    /// Moves all entries out. The table keeps its size, so the caller must make it forget them.
    pub(super) unsafe fn take_entries(self) -> impl Iterator<Item = KeyValue> {
        // SAFETY: promised by the caller. The next place is read before an entry is moved out.
        let first = unsafe { self.ends() }.map(|(first, _)| first);
        let mut place = first;
        std::iter::from_fn(move || {
            let current = place?;
            // SAFETY: as above.
            unsafe {
                place = self.next(current);
                Some(self.entry_ptr(current).read())
            }
        })
    }

    /// Takes the block away from the table, which must not use it any more. Entries that follow the object are not in a
    /// block.
    pub(super) unsafe fn take_block(self) -> OldBlock {
        // SAFETY: promised by the caller.
        unsafe {
            let Body { data, data_deleter, .. } = &mut *self.body();
            let old = OldBlock { data: *data, deleter: data_deleter.take() };
            if old.deleter.is_some() {
                *data = std::ptr::null_mut::<c_void>();
            }
            old
        }
    }

    /// Copies all entries into `other`, which must be empty and in the small form with all its slots. `other` becomes
    /// dense if this table is. Runs no user code.
    pub(in crate::container) unsafe fn copy_to(self, other: Self) {
        // SAFETY: promised by the caller, for both.
        unsafe {
            if !self.is_small() {
                return other.0.cast::<DenseBody>().write(self.dense().copy());
            }
            for place in 0..(*self.body()).size {
                let KeyValue { key, value } = self.entry(place);
                other.small(place).write(KeyValue { key: key.clone(), value: value.clone() });
                (*other.body()).size += 1;
            }
        }
    }
}

/// The capacity that a new object needs as a destination of [`Table::copy_to`].
pub(in crate::container) const COPY_CAPACITY: usize = MAX_SMALL as usize;
