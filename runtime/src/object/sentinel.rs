//! The two sentinel objects: a missing value, and the start of keyword arguments. No header section: upstream makes
//! them in `object.cc`.

use std::sync::OnceLock;

use crate::abi::*;
use crate::heap::{ObjectLayout, ObjectRef, make_own_object};

#[repr(C)]
struct PlainObject {
    header: TVMFFIObject,
}

// SAFETY: repr(C) with the header first.
unsafe impl ObjectLayout for PlainObject {
    const TYPE_INDEX: TypeIndex = TypeIndex::OBJECT;
}

fn get(place: &'static OnceLock<ObjectRef>) -> ObjectRef {
    let make = || {
        let object = make_own_object(|header| PlainObject { header });
        // SAFETY: `make_own_object` returns the object's one strong reference.
        unsafe { ObjectRef::from_non_null(object) }
    };
    place.get_or_init(make).clone()
}

/// The sentinel for a missing value.
pub(crate) fn missing() -> ObjectRef {
    static MISSING: OnceLock<ObjectRef> = OnceLock::new();
    get(&MISSING)
}

/// The sentinel before keyword arguments. Names and values alternate after it.
pub(crate) fn kwargs() -> ObjectRef {
    static KWARGS: OnceLock<ObjectRef> = OnceLock::new();
    get(&KWARGS)
}
