//! The header of every object, with its deleter. Header section: `TVMFFIObject`.
#![allow(non_upper_case_globals)]

use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::sync::atomic::AtomicU64;

/// Handle to an object in the C API.
pub type TVMFFIObjectHandle = *mut c_void;

/// Deleter flag: the last strong reference is gone; run the destructor, keep the memory.
pub const kTVMFFIObjectDeleterFlagBitMaskStrong: c_int = 1 << 0;
/// Deleter flag: the last weak reference is gone; free the memory.
pub const kTVMFFIObjectDeleterFlagBitMaskWeak: c_int = 1 << 1;
/// Deleter flags: both of them, the common case.
pub const kTVMFFIObjectDeleterFlagBitMaskBoth: c_int =
    kTVMFFIObjectDeleterFlagBitMaskStrong | kTVMFFIObjectDeleterFlagBitMaskWeak;

/// Called with the deleter flags when one of the object's counts drops to zero.
pub type TVMFFIObjectDeleter = unsafe extern "C" fn(self_: *mut c_void, flags: c_int);

/// Header of every object on the heap (`TVMFFIObject`).
#[repr(C)]
#[derive(Debug)]
pub struct TVMFFIObject {
    /// Strong count in the low 32 bits, weak count in the high 32 bits.
    pub combined_ref_count: AtomicU64,
    /// Type index of the object.
    pub type_index: i32,
    /// Zero.
    pub __padding: u32,
    /// Destroys the object; may be NULL.
    pub deleter: Option<TVMFFIObjectDeleter>,
}

const _: () = assert!(size_of::<TVMFFIObject>() == 24);
const _: () = assert!(align_of::<TVMFFIObject>() == 8);
const _: () = assert!(offset_of!(TVMFFIObject, type_index) == 8);
const _: () = assert!(offset_of!(TVMFFIObject, __padding) == 12);
const _: () = assert!(offset_of!(TVMFFIObject, deleter) == 16);
