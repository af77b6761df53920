//! Attribute columns in memory: arrays by type index that C code reads without a lock.
//! Header section: `TVMFFITypeAttrColumn`.

use std::alloc::{Layout, alloc_zeroed};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};

use super::publish::keep;
use crate::abi::*;
use crate::any::{Any, AnyView};

/// The attribute columns by name.
#[derive(Default)]
pub(super) struct Attributes {
    columns: HashMap<Vec<u8>, Column>,
}

impl Attributes {
    /// The column of that name, a new one if need be.
    pub(super) fn column(&mut self, name: &[u8]) -> &mut Column {
        self.columns.entry(name.to_vec()).or_insert_with(Column::new)
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<&Column> {
        self.columns.get(name)
    }
}

/// One type's value, None where it has none, in a column of which other threads may be setting values.
///
/// # Safety
/// The header must be that of a [`Column`].
#[inline]
pub(super) unsafe fn read(header: *const TVMFFITypeAttrColumn, index: usize) -> TVMFFIAny {
    let header = header.cast_mut();
    // SAFETY: the header and its arrays are never freed, and changed by atomic stores alone. An array that is read after the size has as
    // many values, and a payload that is read after its type index goes with that.
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

/// Values for which a column has room from the start. This is address space, of which the system gives memory page by page, as values are
/// written. So a column doesn't move as types come.
const FIRST_CAPACITY: usize = 1 << 16;

/// A column. C code may keep the address of its header, and read it at any time. Neither it nor an array is ever freed.
pub(super) struct Column {
    header: *mut TVMFFITypeAttrColumn,
    /// Entries for which the array has room. Those that nothing has set are None, which is all zero.
    capacity: usize,
}

// SAFETY: the header and its array are leaked; they are changed with the table's write lock only, and by atomic stores.
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
        Self { header: Box::into_raw(Box::new(header)), capacity: 0 }
    }

    /// The header, at an address that stays valid.
    pub(super) fn header(&self) -> *const TVMFFITypeAttrColumn {
        self.header
    }

    /// One type's value, None where it has none.
    pub(super) fn value(&self, index: usize) -> AnyView<'_> {
        // SAFETY: the header is never freed, and its array has `size` values.
        unsafe {
            match index < (*self.header).size as usize {
                true => AnyView::from_raw(*(*self.header).data.add(index)),
                false => AnyView::none(),
            }
        }
    }

    /// Sets one type's value, which is given back where the type has one already.
    pub(super) fn set(&mut self, index: usize, value: Any) -> Result<(), (Any, Refused)> {
        if !self.value(index).is_none() {
            return Err((value, Refused::Taken));
        }
        let Some(data) = self.reserve(index) else {
            return Err((value, Refused::NoMemory));
        };
        let raw = value.into_kept_raw();
        // SAFETY: any bits are a number.
        let tag = unsafe { std::mem::transmute::<[u32; 2], u64>([raw.type_index.cast_unsigned(), raw.zero_padding]) };
        // SAFETY: the array has room for the index; header and array are changed by one thread at a time, and aligned. A reader sees
        // the payload before the type index that goes with it, and both before a size that counts them.
        unsafe {
            let place = data.add(index);
            // As a pointer, which the payload may be.
            AtomicPtr::from_ptr(&raw mut (*place).v.v_ptr).store(raw.ptr(), Ordering::Relaxed);
            AtomicU64::from_ptr(place.cast()).store(tag, Ordering::Release);
            let size = (*self.header).size.max(index as i32 + 1);
            AtomicI32::from_ptr(&raw mut (*self.header).size).store(size, Ordering::Release);
        }
        Ok(())
    }

    /// The array, with room for the value at `index`; `None` where there is no memory. Beyond its first capacity an array moves: readers
    /// of the old one find in it what they found before.
    fn reserve(&mut self, index: usize) -> Option<*mut TVMFFIAny> {
        // SAFETY: the header is never freed, and changed by this thread alone.
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
        // SAFETY: the new array has room for the old one's values, which it owns from now on; the header as above.
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
