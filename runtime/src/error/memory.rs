//! Errors without memory: a permanent error object, and texts that may fail to allocate.

use std::cell::UnsafeCell;
use std::fmt::{self, Write};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use super::kind;
use crate::abi::*;
use crate::heap::{ObjectRef, count};

/// An error object that is never freed, since it keeps a reference to itself.
#[repr(C)]
struct Permanent {
    header: TVMFFIObject,
    cell: TVMFFIErrorCell,
}

struct StaticError(UnsafeCell<Permanent>);

// SAFETY: the counts are atomic, and the rest never changes. Only an unshared error may change, and this object is
// never unshared.
unsafe impl Sync for StaticError {}

static OUT_OF_MEMORY: StaticError = StaticError(UnsafeCell::new(Permanent {
    header: TVMFFIObject {
        combined_ref_count: AtomicU64::new(count::BOTH_ONE),
        type_index: TypeIndex::ERROR.0,
        __padding: 0,
        deleter: None,
    },
    cell: TVMFFIErrorCell {
        kind: TVMFFIByteArray::from_slice(kind::MEMORY_ERROR.as_bytes()),
        message: TVMFFIByteArray::from_slice(b"out of memory"),
        backtrace: TVMFFIByteArray::EMPTY,
        update_backtrace: Some(keep_backtrace),
        cause_chain: std::ptr::null_mut(),
        extra_context: std::ptr::null_mut(),
    },
}));

/// The permanent error stores no backtrace.
unsafe extern "C" fn keep_backtrace(_error: TVMFFIObjectHandle, _backtrace: *const TVMFFIByteArray, _mode: i32) {}

/// The `MemoryError` in place of an error that can't be allocated.
#[cold]
pub(super) fn out_of_memory() -> ObjectRef {
    let object: *mut TVMFFIObject = OUT_OF_MEMORY.0.get().cast();
    // SAFETY: the object is static, and laid out as an error.
    unsafe {
        count::inc_ref(object);
        ObjectRef::from_non_null(NonNull::new_unchecked(object))
    }
}

/// A copy of bytes; `None` without memory.
pub(super) fn copied(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).ok()?;
    copy.extend_from_slice(bytes);
    Some(copy)
}

/// A formatted text; `None` without memory.
pub(super) fn formatted(text: fmt::Arguments<'_>) -> Option<String> {
    struct Fallible(String);

    impl Write for Fallible {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            self.0.try_reserve(part.len()).map_err(|_| fmt::Error)?;
            self.0.push_str(part);
            Ok(())
        }
    }

    let mut out = Fallible(String::new());
    out.write_fmt(text).ok()?;
    Some(out.0)
}
