//! The values inside any container by place, for code that replaces them one by one: elements of arrays and lists,
//! values of maps and dicts. Places stay memory-safe when other code changes a list or dict between two steps.

use std::marker::PhantomData;

use super::Array;
use super::list::List;
use super::lock::lock;
use super::map::Map;
use super::seq;
use super::table::{COPY_CAPACITY, Table, new_object};
use crate::abi::TypeIndex;
use crate::any::Any;
use crate::heap::ObjectRef;

/// An array, list, map or dict.
pub(crate) struct Inner {
    container: ObjectRef,
    is_table: bool,
}

impl Inner {
    /// The values inside a container; `None` for any other object.
    pub(crate) fn of(object: &ObjectRef) -> Option<Self> {
        let is_table = match object.type_index() {
            TypeIndex::ARRAY | TypeIndex::LIST => false,
            TypeIndex::MAP | TypeIndex::DICT => true,
            _ => return None,
        };
        Some(Self { container: object.clone(), is_table })
    }

    /// The first value, or the next one after a place, with its place. Returns `None` at the end, and if the place is
    /// gone meanwhile.
    pub(crate) fn next(&self, after: Option<u64>) -> Option<(u64, Any)> {
        let _guard = lock(&self.container);
        if self.is_table {
            let table = Table::of(&self.container);
            // SAFETY: maps don't change, and only this thread accesses a dict while it is locked. The table is asked
            // for a place only if it has that place.
            return unsafe {
                let place = match after {
                    None => table.ends().map(|(first, _)| first),
                    Some(place) if table.holds(place) => table.next(place),
                    Some(_) => None,
                }?;
                Some((place, table.entry(place).value.clone()))
            };
        }
        let place = after.map_or(0, |place| place.saturating_add(1));
        // SAFETY: arrays don't change, and only this thread accesses a list while it is locked.
        let values = unsafe { seq::values_of(seq::cell_of(&self.container).as_ref()) };
        values.get(usize::try_from(place).ok()?).map(|value| (place, value.clone()))
    }

    /// Replaces the value at a place. Without such a place it changes nothing.
    ///
    /// # Safety
    /// No other code may use an array or a map meanwhile.
    pub(crate) unsafe fn set(&self, place: u64, value: Any) {
        let guard = lock(&self.container);
        let old = if self.is_table {
            let table = Table::of(&self.container);
            // SAFETY: promised by the caller; only this thread accesses a dict while it is locked.
            unsafe { if table.holds(place) { table.set_value(place, value) } else { value } }
        } else {
            // SAFETY: as above. An element's slot holds a value, and `place` is below the number of elements.
            unsafe {
                let cell = seq::cell_of(&self.container).as_ptr();
                match usize::try_from(place) {
                    Ok(index) if index < seq::values_of(&*cell).len() => {
                        (*cell).data.cast::<Any>().add(index).replace(value)
                    }
                    _ => value,
                }
            }
        };
        // Its destructor may use the container.
        drop(guard);
        drop(old);
    }

    /// A new container of the same type with the same values. Places stay valid in the copy.
    pub(crate) fn copy(&self) -> Self {
        let object = self.container.clone();
        let container: ObjectRef = match self.container.type_index() {
            TypeIndex::ARRAY => Array::from(<Array>::as_slice(&Array(object, PhantomData)).to_vec()).into(),
            TypeIndex::LIST => List::from(<List>::to_vec(&List(object, PhantomData))).into(),
            TypeIndex::MAP => {
                let copy = Map::for_copy();
                // SAFETY: the map doesn't change, and no other code has the copy yet.
                unsafe { Table::of(&object).copy_to(copy.table()) };
                copy.into()
            }
            _ => {
                let copy = new_object::<{ TypeIndex::DICT.0 }>(COPY_CAPACITY);
                let _guard = lock(&object);
                // SAFETY: only this thread accesses the locked table, and no other code has the copy yet.
                unsafe { Table::of(&object).copy_to(Table::of(&copy)) };
                copy
            }
        };
        Self { container, is_table: self.is_table }
    }

    /// The container.
    pub(crate) fn into_container(self) -> ObjectRef {
        self.container
    }
}
