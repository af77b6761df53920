//! The shared part of `Array` and `List`: header, `TVMFFISeqCell`, and elements of 16 bytes each. The elements follow
//! the cell (no `data_deleter`) or are in a separate block. Header section: `TVMFFISeqCell`.

use std::ptr::NonNull;

use super::block;
use crate::abi::*;
use crate::any::Any;
use crate::heap::{ObjectLayout, ObjectRef, make_object, release};

#[repr(C)]
struct SeqObject<const INDEX: i32> {
    header: TVMFFIObject,
    cell: TVMFFISeqCell,
}

// SAFETY: repr(C) with the header first; the cell follows, as in the header file.
unsafe impl<const INDEX: i32> ObjectLayout for SeqObject<INDEX> {
    const TYPE_INDEX: TypeIndex = TypeIndex(INDEX);

    unsafe fn drop_fields(object: *mut Self) {
        // SAFETY: everything is read through the cell, because C code may have changed its elements and block. The cell
        // owns `size` values at `data`. Each value is moved out once; then the block is passed to its own deleter.
        unsafe {
            let TVMFFISeqCell { data, size, data_deleter, .. } = (*object).cell;
            let (values, len) = (data.cast::<Any>(), usize::try_from(size).unwrap_or(0));
            // Most elements own nothing, so there is nothing to release.
            if (0..len).any(|i| (*values.add(i)).type_index().is_object()) {
                release((0..len).filter_map(|i| values.add(i).read().into_object()));
            }
            if let Some(data_deleter) = data_deleter {
                data_deleter(data);
            }
        }
    }
}

// The elements after an object are aligned: its size is a multiple of their alignment.
const _: () = assert!(size_of::<SeqObject<0>>() == 56 && align_of::<Any>() == 8);

/// A new object with its elements after the cell.
pub(super) fn new_inline<const INDEX: i32>(values: Vec<Any>) -> ObjectRef {
    let len = values.len();
    let object = make_object::<SeqObject<INDEX>>(len * size_of::<Any>(), |header, tail| {
        // SAFETY: the tail is new, aligned (see above), and has room for the values.
        unsafe { move_values(values, tail.cast()) };
        let cell = TVMFFISeqCell { data: tail.cast(), size: len as i64, capacity: len as i64, data_deleter: None };
        SeqObject { header, cell }
    });
    // SAFETY: `make_object` returns the object's one strong reference.
    unsafe { ObjectRef::from_non_null(object) }
}

/// A new object of up to `capacity` elements, constructed one after the other in their final location after the cell.
///
/// # Errors
/// The first error of an element.
pub(super) fn try_new_inline<const INDEX: i32, E>(
    capacity: usize,
    values: impl Iterator<Item = Result<Any, E>>,
) -> Result<ObjectRef, E> {
    let object = make_object::<SeqObject<INDEX>>(capacity.saturating_mul(size_of::<Any>()), |header, tail| {
        let cell = TVMFFISeqCell { data: tail.cast(), size: 0, capacity: capacity as i64, data_deleter: None };
        SeqObject { header, cell }
    });
    // SAFETY: `make_object` returns the object's one strong reference.
    let object = unsafe { ObjectRef::from_non_null(object) };
    // SAFETY: no other code has the object yet, and the tail has room for `capacity` values.
    unsafe { fill(&object, capacity, values)? };
    Ok(object)
}

/// As [`try_new_inline`], with the elements in a separate block.
///
/// # Errors
/// The first error of an element.
pub(super) fn try_new_with_block<const INDEX: i32, E>(
    capacity: usize,
    values: impl Iterator<Item = Result<Any, E>>,
) -> Result<ObjectRef, E> {
    let data = allocate_block(capacity).unwrap_or_else(|| out_of_memory(capacity));
    let object = make_object::<SeqObject<INDEX>>(0, |header, _| {
        let data_deleter = Some(block::free_block as _);
        SeqObject {
            header,
            cell: TVMFFISeqCell { data: data.cast(), size: 0, capacity: capacity as i64, data_deleter },
        }
    });
    // SAFETY: `make_object` returns the object's one strong reference.
    let object = unsafe { ObjectRef::from_non_null(object) };
    // SAFETY: no other code has the object yet, and the block has room for `capacity` values.
    unsafe { fill(&object, capacity, values)? };
    Ok(object)
}

/// Constructs elements in their final location, one after the other.
///
/// # Errors
/// The first error of an element. The elements before it stay in the object.
///
/// # Safety
/// The object must be new and empty, and have room for `capacity` elements.
#[inline]
unsafe fn fill<E>(object: &ObjectRef, capacity: usize, values: impl Iterator<Item = Result<Any, E>>) -> Result<(), E> {
    let cell = cell_of(object).as_ptr();
    for (i, value) in values.take(capacity).enumerate() {
        let value = value?;
        // SAFETY: promised by the caller.
        unsafe {
            (*cell).data.cast::<Any>().add(i).write(value);
            (*cell).size = i as i64 + 1;
        }
    }
    Ok(())
}

/// A new object with its elements in a separate block.
pub(super) fn new_with_block<const INDEX: i32>(values: Vec<Any>) -> ObjectRef {
    let len = values.len();
    let data = allocate_block(len).unwrap_or_else(|| out_of_memory(len));
    // SAFETY: the block is new and has room for the values.
    unsafe { move_values(values, data) };
    let cell = TVMFFISeqCell {
        data: data.cast(),
        size: len as i64,
        capacity: len as i64,
        data_deleter: Some(block::free_block),
    };
    let object = make_object::<SeqObject<INDEX>>(0, |header, _| SeqObject { header, cell });
    // SAFETY: as in `new_inline`.
    unsafe { ObjectRef::from_non_null(object) }
}

/// # Safety
/// `to` must have room for the values, or be NULL when there are no values.
unsafe fn move_values(values: Vec<Any>, to: *mut Any) {
    for (i, value) in values.into_iter().enumerate() {
        // SAFETY: promised by the caller.
        unsafe { to.add(i).write(value) };
    }
}

/// The cell of an array or list object.
pub(super) fn cell_of(object: &ObjectRef) -> NonNull<TVMFFISeqCell> {
    // SAFETY: the cell follows the header within the object, so its address is not NULL.
    unsafe { NonNull::new_unchecked(object.as_ptr().add(1).cast()) }
}

/// The elements that a cell describes.
///
/// # Safety
/// The cell must be valid, and its elements must stay alive and unchanged for `'a`.
pub(super) unsafe fn values_of<'a>(cell: &TVMFFISeqCell) -> &'a [Any] {
    match usize::try_from(cell.size) {
        // SAFETY: promised by the caller.
        Ok(len) if len > 0 => unsafe { std::slice::from_raw_parts(cell.data.cast(), len) },
        _ => &[],
    }
}

/// A block for `capacity` elements: NULL for zero elements, `None` when out of memory.
fn allocate_block(capacity: usize) -> Option<*mut Any> {
    if capacity == 0 {
        return Some(std::ptr::null_mut());
    }
    let size = capacity.checked_mul(size_of::<Any>()).filter(|&size| isize::try_from(size).is_ok())?;
    block::allocate(size).map(|block| block.cast().as_ptr())
}

fn out_of_memory(capacity: usize) -> ! {
    block::out_of_memory(capacity.saturating_mul(size_of::<Any>()))
}

/// Makes room for `capacity` elements in total. Returns false when out of memory.
///
/// # Safety
/// The cell must be valid, and no other code may use it meanwhile.
pub(super) unsafe fn reserve(cell: &mut TVMFFISeqCell, capacity: usize) -> bool {
    if usize::try_from(cell.capacity).is_ok_and(|old| capacity <= old) {
        return true;
    }
    let Some(block) = allocate_block(capacity) else {
        return false;
    };
    // SAFETY: the new block has room for the old elements, which move there as plain bytes. The old block then holds no
    // values and is passed to its own deleter.
    unsafe {
        if cell.size > 0 {
            block.copy_from_nonoverlapping(cell.data.cast(), cell.size as usize);
        }
        if let Some(data_deleter) = cell.data_deleter {
            data_deleter(cell.data);
        }
    }
    cell.data = block.cast();
    cell.capacity = capacity as i64;
    // The old block may have been a foreign one.
    cell.data_deleter = Some(block::free_block);
    true
}

/// Replaces the elements from `start` to `end` with `new`, and returns the old ones.
///
/// # Safety
/// As [`reserve`]; `start <= end <= cell.size`.
pub(super) unsafe fn splice(cell: &mut TVMFFISeqCell, start: usize, end: usize, new: &mut [Any]) -> Vec<Any> {
    let len = usize::try_from(cell.size).unwrap_or(0);
    let new_len = len - (end - start) + new.len();
    if new_len as i64 > cell.capacity {
        let doubled = usize::try_from(cell.capacity).unwrap_or(0).saturating_mul(2);
        // SAFETY: promised by the caller.
        if !unsafe { reserve(cell, new_len.max(doubled)) } {
            out_of_memory(new_len);
        }
    }
    let mut old = Vec::with_capacity(end - start);
    let data = cell.data.cast::<Any>();
    // SAFETY: the caller promises the bounds, and the block has room for the new length. Each old element is copied out
    // once, and its slot is then overwritten or cut off.
    unsafe {
        old.extend((start..end).map(|i| data.add(i).read()));
        if end < len && end - start != new.len() {
            data.add(start + new.len()).copy_from(data.add(end), len - end);
        }
        for (i, value) in new.iter_mut().enumerate() {
            data.add(start + i).write(std::mem::take(value));
        }
    }
    cell.size = new_len as i64;
    old
}
