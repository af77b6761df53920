//! Objects with a word before their header. A C++ object whose class has virtual methods begins with the pointer to its
//! vtable, and the header follows. No header section: this is the ABI of C++.

use std::alloc::{Layout, handle_alloc_error};
use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr::NonNull;

use super::alloc::{ObjectLayout, allocate, delete, new_header};
use super::live;
use crate::abi::*;

#[repr(C)]
struct Prefixed<T> {
    word: *const c_void,
    object: T,
}

/// As [`make_object`](super::make_object), with `word` directly before the object.
pub(crate) fn make_prefixed_object<T: ObjectLayout>(
    word: *const c_void,
    build: impl FnOnce(TVMFFIObject) -> T,
) -> NonNull<T> {
    const { assert!(offset_of!(Prefixed<T>, object) == size_of::<*const c_void>()) };
    let layout = Layout::new::<Prefixed<T>>();
    let storage = allocate(layout, T::TYPE_INDEX).unwrap_or_else(|| handle_alloc_error(layout)).cast::<Prefixed<T>>();
    let header = TVMFFIObject { deleter: Some(delete_prefixed::<T>), ..new_header::<T>() };
    // SAFETY: `allocate` returned storage of this size and alignment that no other code uses.
    let object = unsafe {
        storage.write(Prefixed { word, object: build(header) });
        storage.byte_add(offset_of!(Prefixed<T>, object)).cast::<T>()
    };
    live::made(object.as_ptr());
    object
}

/// The deleter of every object made by [`make_prefixed_object`].
unsafe extern "C" fn delete_prefixed<T: ObjectLayout>(object: *mut c_void, flags: c_int) {
    if flags & kTVMFFIObjectDeleterFlagBitMaskWeak != 0 {
        live::gone(object);
    }
    // SAFETY: promised by the caller. The storage of such an object begins with the word before it.
    unsafe { delete::<T>(object, object.byte_sub(offset_of!(Prefixed<T>, object)), flags) };
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::heap::{ObjectRef, WeakRef};

    #[repr(C)]
    struct Holder {
        header: TVMFFIObject,
        held: Arc<u8>,
    }

    // SAFETY: repr(C) with the header first.
    unsafe impl ObjectLayout for Holder {
        const TYPE_INDEX: TypeIndex = TypeIndex::OBJECT;

        unsafe fn drop_fields(object: *mut Self) {
            // SAFETY: promised by the caller.
            unsafe { (&raw mut (*object).held).drop_in_place() };
        }
    }

    #[test]
    fn the_word_precedes_the_header_until_the_storage_goes() {
        static WORD: u8 = 0;
        let held = Arc::new(7);
        let object = make_prefixed_object((&raw const WORD).cast(), |header| Holder { header, held: held.clone() });
        // SAFETY: the object has the one reference that is taken here.
        let object = unsafe { ObjectRef::from_non_null(object) };
        // SAFETY: this is the storage's first word.
        let word = || unsafe { object.as_ptr().cast::<*const u8>().sub(1).read() };
        assert!(std::ptr::eq(word(), &raw const WORD));
        let weak: WeakRef = object.clone().downgrade();
        assert_eq!(Arc::strong_count(&held), 2);
        drop(object);
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(weak.upgrade().is_none());
    }
}
