//! Objects whose inner layout the header leaves open, and which C++ code lays out differently.
//! A mark after the header identifies this crate's objects. No other implementation stores that value there.
//! Header section: `kTVMFFIModule`.

use super::alloc::{ObjectLayout, make_object};
use super::reference::ObjectRef;
use crate::abi::*;

#[repr(C)]
struct MarkedObject<T, const INDEX: i32> {
    header: TVMFFIObject,
    mark: *const u8,
    body: T,
}

// SAFETY: repr(C) with the header first.
unsafe impl<T, const INDEX: i32> ObjectLayout for MarkedObject<T, INDEX> {
    const TYPE_INDEX: TypeIndex = TypeIndex(INDEX);

    unsafe fn drop_fields(object: *mut Self) {
        // SAFETY: promised by the caller.
        unsafe { (&raw mut (*object).body).drop_in_place() };
    }
}

/// Its address is the mark. In upstream's modules, that field is the pointer to their vtable.
static MARK: u8 = 0;

/// A new object of type index `INDEX` around `body`.
pub(crate) fn new<T: Send + Sync, const INDEX: i32>(body: T) -> ObjectRef {
    let object =
        make_object::<MarkedObject<T, INDEX>>(0, |header, _| MarkedObject { header, mark: &raw const MARK, body });
    // SAFETY: `make_object` returns the object's one strong reference.
    unsafe { ObjectRef::from_non_null(object) }
}

/// True if a module object was made by this crate.
pub(crate) fn is_marked(object: &ObjectRef) -> bool {
    // SAFETY: the object is alive, and in every implementation at least one word follows the header.
    let word = unsafe { object.as_ptr().add(1).cast::<*const u8>().read() };
    std::ptr::eq(word, &raw const MARK)
}

/// The body of an object that [`new`] made.
///
/// # Safety
/// The object must be marked, and `T` the type of its body.
pub(crate) unsafe fn body_of<T>(object: &ObjectRef) -> &T {
    // SAFETY: promised by the caller; the body's offset depends only on `T`.
    unsafe { &(*object.as_ptr().cast::<MarkedObject<T, 0>>()).body }
}
