//! The infos of registered types by index, readable without a lock. The table only grows: its segments and infos never
//! move and are never freed, so C may keep their addresses. `type_table` fills it. Header section: `TVMFFIGetTypeInfo`.

use std::sync::atomic::{AtomicPtr, Ordering};

use crate::abi::*;
use crate::external;

type Slot = AtomicPtr<TVMFFITypeInfo>;

/// Slots of the first segment, which is the fastest to reach. It has room for all static indices, and for all types of
/// nearly every process. Each further segment has twice the slots of the one before.
const FIRST: usize = 4096;
const _: () = assert!(FIRST.is_power_of_two());

/// The first segment. It takes no memory before types are registered, and no allocation.
static FIRST_SEGMENT: [Slot; FIRST] = [const { Slot::new(std::ptr::null_mut()) }; FIRST];

/// The further segments: enough for every index.
static SEGMENTS: [AtomicPtr<Slot>; 19] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 19];

/// The further segment of an index that is not in the first one, its number of slots, and the position in it.
const fn place(index: usize) -> (usize, usize, usize) {
    let shifted = index + FIRST;
    let segment = (shifted.ilog2() - FIRST.ilog2()) as usize;
    (segment - 1, FIRST << segment, shifted - (FIRST << segment))
}

/// The info of a type, if it is registered.
#[inline]
pub(crate) fn get(index: i32) -> Option<*mut TVMFFITypeInfo> {
    published(index).or_else(|| external::type_info(index, publish))
}

/// The info of a type that is certainly registered, such as that of any object.
#[inline]
pub(crate) fn of_registered(index: i32) -> Option<*mut TVMFFITypeInfo> {
    published(index).or_else(|| external::registered_type_info(index, publish))
}

/// The info of a type, if it is published.
#[inline]
fn published(index: i32) -> Option<*mut TVMFFITypeInfo> {
    let index = usize::try_from(index).ok()?;
    if let Some(slot) = FIRST_SEGMENT.get(index) {
        return loaded(slot);
    }
    let (segment, _, offset) = place(index);
    let slots = SEGMENTS.get(segment)?.load(Ordering::Acquire);
    if slots.is_null() {
        return None;
    }
    // SAFETY: a segment is never freed, and the offset lies in it.
    loaded(unsafe { &*slots.add(offset) })
}

#[inline]
fn loaded(slot: &Slot) -> Option<*mut TVMFFITypeInfo> {
    let info = slot.load(Ordering::Acquire);
    (!info.is_null()).then_some(info)
}

/// Publishes the info of a type, which must never be freed. Only one thread may call this at a time.
pub(crate) fn publish(index: i32, info: *mut TVMFFITypeInfo) {
    let Ok(index) = usize::try_from(index) else { return };
    if let Some(slot) = FIRST_SEGMENT.get(index) {
        return slot.store(info, Ordering::Release);
    }
    let (segment, len, offset) = place(index);
    let Some(segment) = SEGMENTS.get(segment) else { return };
    let mut slots = segment.load(Ordering::Acquire);
    if slots.is_null() {
        slots = Vec::leak((0..len).map(|_| Slot::default()).collect()).as_mut_ptr();
        segment.store(slots, Ordering::Release);
    }
    // SAFETY: as in `published`.
    unsafe { &*slots.add(offset) }.store(info, Ordering::Release);
}

/// The key of a type for messages. Unknown indices are written as numbers.
pub(crate) fn key_of(index: TypeIndex) -> String {
    if let Some(key) = index.static_type_key() {
        return key.to_owned();
    }
    let Some(info) = get(index.0) else {
        return format!("type index {}", index.0);
    };
    // SAFETY: infos are never freed, and their keys are leaked strings that never change.
    let key = unsafe { (*info).type_key.as_slice() };
    String::from_utf8_lossy(key).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_has_a_place_of_its_own() {
        assert_eq!(place(FIRST), (0, 2 * FIRST, 0));
        assert_eq!(place(3 * FIRST - 1), (0, 2 * FIRST, 2 * FIRST - 1));
        assert_eq!(place(3 * FIRST), (1, 4 * FIRST, 0));
        assert!(place(i32::MAX as usize).0 < SEGMENTS.len());
        assert!(get(i32::MAX).is_none() && get(-1).is_none());
    }
}
