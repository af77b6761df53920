//! The two objects that stand for something else: a value that is not there, and the beginning of keyword arguments.
//! No header section: upstream makes them in `object.cc`.

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
        // SAFETY: `make_own_object` hands out the object's one strong reference.
        unsafe { ObjectRef::from_non_null(object) }
    };
    place.get_or_init(make).clone()
}

/// The one object that stands for a value that is not there.
pub(crate) fn missing() -> ObjectRef {
    static MISSING: OnceLock<ObjectRef> = OnceLock::new();
    get(&MISSING)
}

/// The one object after which arguments are keywords and values in turn.
pub(crate) fn kwargs() -> ObjectRef {
    static KWARGS: OnceLock<ObjectRef> = OnceLock::new();
    get(&KWARGS)
}
