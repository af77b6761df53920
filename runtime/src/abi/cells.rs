//! The cells that follow the header in each kind of object.
//! Also the allocator interface and the signature of every callable.
//! Header sections: `...Cell`, `TVMFFISafeCallType`, `TVMFFICustomAllocator`.
#![allow(non_upper_case_globals)]

use std::ffi::c_void;
use std::mem::offset_of;

use super::any::{TVMFFIAny, TVMFFIByteArray};
use super::object::TVMFFIObjectHandle;

/// Cell of a shape object: a pointer to the extents, and the number of extents.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct TVMFFIShapeCell {
    /// The extents.
    pub data: *const i64,
    /// Number of extents.
    pub size: usize,
}

/// Cell of array and list objects.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct TVMFFISeqCell {
    /// First element.
    pub data: *mut c_void,
    /// Elements in use.
    pub size: i64,
    /// Elements allocated.
    pub capacity: i64,
    /// Frees `data` if it is a separate allocation; otherwise NULL.
    pub data_deleter: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// Mode of `update_backtrace`: replaces the text.
pub const kTVMFFIBacktraceUpdateModeReplace: i32 = 0;
/// Mode of `update_backtrace`: appends to the text.
pub const kTVMFFIBacktraceUpdateModeAppend: i32 = 1;

/// Changes an error's backtrace: error handle, text, mode.
pub type TVMFFIUpdateBacktrace =
    unsafe extern "C" fn(self_: TVMFFIObjectHandle, backtrace: *const TVMFFIByteArray, update_mode: i32);

/// Cell of an error object.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct TVMFFIErrorCell {
    /// Kind, such as `ValueError`.
    pub kind: TVMFFIByteArray,
    /// Message.
    pub message: TVMFFIByteArray,
    /// Backtrace text, most recent call first.
    pub backtrace: TVMFFIByteArray,
    /// Changes the backtrace.
    pub update_backtrace: Option<TVMFFIUpdateBacktrace>,
    /// The error that caused this one, owned; or NULL.
    pub cause_chain: TVMFFIObjectHandle,
    /// Further context, owned; or NULL.
    pub extra_context: TVMFFIObjectHandle,
}

/// Signature of every callable. 0 is success; -1 means that the thread's slot holds an error.
///
/// The caller sets `result->type_index` to None (or another index below 64) beforehand.
pub type TVMFFISafeCallType =
    unsafe extern "C" fn(handle: *mut c_void, args: *const TVMFFIAny, num_args: i32, result: *mut TVMFFIAny) -> i32;

/// Cell of a function object.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct TVMFFIFunctionCell {
    /// The callable; NULL only in a broken object.
    pub safe_call: Option<TVMFFISafeCallType>,
    /// The function for C++ callers, which throws; always NULL in functions that this crate makes.
    pub cpp_call: *mut c_void,
}

/// Cell of an opaque object.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct TVMFFIOpaqueObjectCell {
    /// The foreign handle.
    pub handle: *mut c_void,
}

/// Header directly before every object body.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct TVMFFIObjectAllocHeader {
    /// Frees the whole allocation of an object body; may be NULL.
    pub delete_space: Option<unsafe extern "C" fn(ptr: *mut c_void)>,
}

/// Allocator of object storage.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct TVMFFICustomAllocator {
    /// Returns storage for a body of `size` bytes, or NULL with an error raised.
    pub allocate: Option<
        unsafe extern "C" fn(size: usize, alignment: usize, type_index: i32, context: *mut c_void) -> *mut c_void,
    >,
    /// Passed to `allocate` unchanged.
    pub context: *mut c_void,
}

const _: () = assert!(size_of::<TVMFFIShapeCell>() == 16);
const _: () = assert!(size_of::<TVMFFISeqCell>() == 32);
const _: () = assert!(offset_of!(TVMFFISeqCell, size) == 8);
const _: () = assert!(offset_of!(TVMFFISeqCell, capacity) == 16);
const _: () = assert!(offset_of!(TVMFFISeqCell, data_deleter) == 24);
const _: () = assert!(size_of::<TVMFFIErrorCell>() == 72);
const _: () = assert!(offset_of!(TVMFFIErrorCell, backtrace) == 32);
const _: () = assert!(offset_of!(TVMFFIErrorCell, update_backtrace) == 48);
const _: () = assert!(offset_of!(TVMFFIErrorCell, cause_chain) == 56);
const _: () = assert!(offset_of!(TVMFFIErrorCell, extra_context) == 64);
const _: () = assert!(size_of::<TVMFFIFunctionCell>() == 16);
const _: () = assert!(offset_of!(TVMFFIFunctionCell, cpp_call) == 8);
const _: () = assert!(size_of::<TVMFFIOpaqueObjectCell>() == 8);
const _: () = assert!(size_of::<TVMFFIObjectAllocHeader>() == 8);
const _: () = assert!(size_of::<TVMFFICustomAllocator>() == 16);
