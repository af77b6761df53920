//! The objects of maps and dicts: how they are created, and what they own.
//! Header sections: `kTVMFFIMap`, `kTVMFFIDict`.

use std::mem::offset_of;

use super::entries::Table;
use super::layout::{Body, DenseBody, KeyValue, MAX_SMALL, SMALL};
use crate::abi::*;
use crate::any::Any;
use crate::heap::{ObjectLayout, ObjectRef, make_object, release};

/// Minimum number of slots in the small form. With them, an object has room for the fields of the dense form.
const MIN_SMALL: usize = 2;
/// A map or dict object. Its entries may follow it.
#[repr(C)]
struct MapObject<const INDEX: i32> {
    header: TVMFFIObject,
    body: Body,
}

const _: () = assert!(size_of::<MapObject<0>>() == 56 && offset_of!(MapObject<0>, body) == 24);
const _: () = assert!(size_of::<DenseBody>() - size_of::<Body>() <= MIN_SMALL * size_of::<KeyValue>());

// SAFETY: repr(C) with the header first; the body follows, as in upstream's header file.
unsafe impl<const INDEX: i32> ObjectLayout for MapObject<INDEX> {
    const TYPE_INDEX: TypeIndex = TypeIndex(INDEX);

    unsafe fn drop_fields(object: *mut Self) {
        // SAFETY: promised by the caller. C++ code may have changed the body, but it still owns its entries and its
        // block. Each entry is moved out once, and then the block is freed.
        unsafe {
            let table = Table::at(&raw mut (*object).body);
            // Keys and values that own nothing need no release.
            let owns = |value: &Any| value.type_index().is_object();
            if table.places().map(|place| table.entry(place)).any(|KeyValue { key, value }| owns(key) || owns(value)) {
                release(
                    table.take_entries().flat_map(|KeyValue { key, value }| [key, value]).filter_map(Any::into_object),
                );
            }
            drop(table.take_block());
        }
    }
}

/// A new empty map or dict in the small form, with room for `capacity` entries or as many as that form can hold.
pub(in crate::container) fn new_object<const INDEX: i32>(capacity: usize) -> ObjectRef {
    let inline = capacity.clamp(MIN_SMALL, MAX_SMALL as usize);
    let object = make_object::<MapObject<INDEX>>(inline * size_of::<KeyValue>(), |header, tail| MapObject {
        header,
        body: Body { data: tail.cast(), size: 0, slots: inline as u64 | SMALL, data_deleter: None },
    });
    // SAFETY: `make_object` returns the object's one strong reference.
    unsafe { ObjectRef::from_non_null(object) }
}
