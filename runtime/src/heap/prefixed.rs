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
