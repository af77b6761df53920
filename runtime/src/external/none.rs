//! Without an external runtime: this crate uses its own.

use std::ffi::c_void;

use crate::abi::*;

/// True if this crate uses an external runtime.
pub(crate) const IS_USED: bool = false;

/// Stores an info that was found.
type Publish = fn(i32, *mut TVMFFITypeInfo);

#[inline]
pub(crate) fn type_info(_index: i32, _publish: Publish) -> Option<*mut TVMFFITypeInfo> {
    None
}

#[inline]
pub(crate) fn registered_type_info(_index: i32, _publish: Publish) -> Option<*mut TVMFFITypeInfo> {
    None
}

#[inline]
pub(crate) fn allocator() -> Option<*mut TVMFFICustomAllocator> {
    None
}

#[inline]
pub(crate) unsafe fn set_allocator(_allocator: *mut TVMFFICustomAllocator) -> bool {
    false
}

#[inline]
pub(crate) unsafe fn set_raised(_error: *mut c_void) -> bool {
    false
}

#[inline]
pub(crate) fn take_raised() -> Option<*mut c_void> {
    None
}
