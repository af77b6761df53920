//! Attribute columns in memory: arrays by type index that C code reads without a lock.
//! Header section: `TVMFFITypeAttrColumn`.

use std::alloc::{Layout, alloc_zeroed};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};

use rustc_hash::FxBuildHasher;

use super::publish::keep;
use crate::abi::*;
use crate::any::{Any, AnyView};

/// The attribute columns by name.
#[derive(Default)]
pub(super) struct Attributes {
    columns: HashMap<Cow<'static, [u8]>, Column, FxBuildHasher>,
}

impl Attributes {
    /// Creates the column of a built-in attribute, unless it exists.
    pub(super) fn built_in(&mut self, name: &'static str) -> &mut Column {
        self.columns.entry(Cow::Borrowed(name.as_bytes())).or_insert_with(Column::new)
    }

    /// Returns the column of that name, with its built-in values, and creates it if it doesn't exist.
    pub(super) fn column(&mut self, name: &[u8]) -> &mut Column {
        let column = self.columns.entry(Cow::Owned(name.to_owned())).or_insert_with(Column::new);
        column.place_built_in();
        column
    }

    /// The column of that name. Its built-in values may not be in place yet.
    pub(super) fn get(&self, name: &[u8]) -> Option<&Column> {
        self.columns.get(name)
    }
}

/// One type's value in a column, or None if the type has no value. Other threads may set values at the same time.
///
/// # Safety
/// The header must be that of a [`Column`].
#[inline]
pub(super) unsafe fn read(header: *const TVMFFITypeAttrColumn, index: usize) -> TVMFFIAny {
    let header = header.cast_mut();
    // SAFETY: the header and its arrays are never freed, and are changed only with atomic stores. The array is loaded
    // after the size, so it has at least that many values. A payload is loaded after its type index, so they match.
    unsafe {
        let size = AtomicI32::from_ptr(&raw mut (*header).size).load(Ordering::Acquire);
        if index >= size as usize {
            return TVMFFIAny::none();
        }
        let data = AtomicPtr::from_ptr((&raw mut (*header).data).cast::<*mut TVMFFIAny>()).load(Ordering::Acquire);
        let place = data.add(index);
        let tag = AtomicU64::from_ptr(place.cast()).load(Ordering::Acquire);
        if tag == 0 {
            return TVMFFIAny::none();
        }
        let [type_index, zero_padding] = std::mem::transmute::<u64, [u32; 2]>(tag);
        let v_ptr = AtomicPtr::from_ptr(&raw mut (*place).v.v_ptr).load(Ordering::Relaxed);
        TVMFFIAny { type_index: type_index.cast_signed(), zero_padding, v: TVMFFIAnyValue { v_ptr } }
    }
}

/// The initial capacity of a column, in values. This reserves address space, and the system allocates its pages when
/// values are written. The capacity is large so that columns rarely move when types are added.
const FIRST_CAPACITY: usize = 1 << 16;

/// A column. C code may keep the address of its header and read it at any time, so the header and its arrays are never
/// freed.
pub(super) struct Column {
    header: *mut TVMFFITypeAttrColumn,
    /// The capacity of the array, in entries. Unset entries are None, which is all zero bits.
    capacity: usize,
    /// Values of built-in types, by type index, until they are placed in the array. Most programs ask for few columns,
    /// and each array takes a page of memory.
    built_in: Vec<(usize, Any)>,
}

// SAFETY: the header and its array are leaked. They are changed only under the table's write lock, with atomic stores.
unsafe impl Send for Column {}
// SAFETY: as above.
unsafe impl Sync for Column {}

/// Why a value can't be set.
pub(super) enum Refused {
    Taken,
    NoMemory,
}

impl Column {
    fn new() -> Self {
        let header = TVMFFITypeAttrColumn { data: std::ptr::null(), size: 0, begin_index: 0 };
        Self { header: Box::into_raw(Box::new(header)), capacity: 0, built_in: Vec::new() }
    }

    /// Adds the value of a built-in type. The column's header must not be in use yet.
    pub(super) fn add_built_in(&mut self, index: usize, value: Any) {
        self.built_in.push((index, value));
    }

    /// True if all values are in the array.
    pub(super) fn is_placed(&self) -> bool {
        self.built_in.is_empty()
    }

    /// Places the values of built-in types in the array. Those for which there is no memory wait for the next call.
    fn place_built_in(&mut self) {
        let waiting = std::mem::take(&mut self.built_in);
        for (index, value) in waiting {
            if let Err((value, Refused::NoMemory)) = self.set(index, value) {
                self.built_in.push((index, value));
            }
        }
    }

    /// The header, at an address that stays valid.
    pub(super) fn header(&self) -> *const TVMFFITypeAttrColumn {
        self.header
    }

    /// One type's value, or None if it has no value.
    pub(super) fn value(&self, index: usize) -> AnyView<'_> {
        // SAFETY: the header is never freed, and its array has `size` values.
        unsafe {
            match index < (*self.header).size as usize {
                true => AnyView::from_raw(*(*self.header).data.add(index)),
                false => AnyView::none(),
            }
        }
    }

    /// Sets one type's value. On failure, returns the value and the reason.
    pub(super) fn set(&mut self, index: usize, value: Any) -> Result<(), (Any, Refused)> {
        if !self.value(index).is_none() {
            return Err((value, Refused::Taken));
        }
        let Some(data) = self.reserve(index) else {
            return Err((value, Refused::NoMemory));
        };
        let raw = value.into_kept_raw();
        // SAFETY: every bit pattern is a valid integer.
        let tag = unsafe { std::mem::transmute::<[u32; 2], u64>([raw.type_index.cast_unsigned(), raw.zero_padding]) };
        // SAFETY: the array has room for the index. Header and array are aligned, and one thread at a time changes
        // them. A reader sees the payload before its type index, and both before a size that includes them.
        unsafe {
            let place = data.add(index);
            // Store it as a pointer to keep its provenance, since the payload may be a pointer.
            AtomicPtr::from_ptr(&raw mut (*place).v.v_ptr).store(raw.ptr(), Ordering::Relaxed);
            AtomicU64::from_ptr(place.cast()).store(tag, Ordering::Release);
            let size = (*self.header).size.max(index as i32 + 1);
            AtomicI32::from_ptr(&raw mut (*self.header).size).store(size, Ordering::Release);
        }
        Ok(())
    }

    /// Returns the array, grown to have room for the value at `index`; `None` if memory can't be allocated. Growing
    /// moves the array. The old one keeps its values for threads that still read it.
    fn reserve(&mut self, index: usize) -> Option<*mut TVMFFIAny> {
        // SAFETY: the header is never freed, and only this thread changes it now.
        let (old, size) = unsafe { ((*self.header).data.cast_mut(), (*self.header).size as usize) };
        if index < self.capacity {
            return Some(old);
        }
        let capacity = (index + 1).next_power_of_two().max(2 * self.capacity).max(FIRST_CAPACITY);
        let layout = Layout::array::<TVMFFIAny>(capacity).ok()?;
        // SAFETY: the layout's size is not zero.
        let data = unsafe { alloc_zeroed(layout) }.cast::<TVMFFIAny>();
        if data.is_null() {
            return None;
        }
        // SAFETY: the new array has room for the old one's values, and owns them from now on. The header is as above.
        unsafe {
            if size > 0 {
                keep(old.cast());
                data.copy_from_nonoverlapping(old, size);
            }
            AtomicPtr::from_ptr((&raw mut (*self.header).data).cast::<*mut TVMFFIAny>()).store(data, Ordering::Release);
        }
        self.capacity = capacity;
        Some(data)
    }
}
