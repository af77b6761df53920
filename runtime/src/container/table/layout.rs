//! The memory layout of maps and dicts, as code compiled against upstream's headers reads and changes it.
//!
//! Up to four entries are stored consecutively, usually after the object: the *small* form. More entries are stored in
//! blocks of 16 slots with a metadata byte each, and are linked in insertion order: the *dense* form. The highest bit
//! of `slots` distinguishes the forms. Rules: upstream's `container/map_base.h`.

use std::ffi::c_void;
use std::mem::offset_of;

use crate::any::Any;

/// The fields after the header in both forms.
#[repr(C)]
pub(super) struct Body {
    pub(super) data: *mut c_void,
    /// Number of entries.
    pub(super) size: u64,
    /// Number of slots, with the [`SMALL`] bit set in the small form.
    pub(super) slots: u64,
    /// Frees `data` if it is a separate block.
    pub(super) data_deleter: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// The fields after the header in the dense form.
#[repr(C)]
pub(super) struct DenseBody {
    pub(super) body: Body,
    /// The right shift that turns a hash into a slot.
    pub(super) fib_shift: u32,
    /// The slots of the first and the last entry in insertion order, or [`NONE`].
    pub(super) head: u64,
    pub(super) tail: u64,
}

/// A key with its value.
#[repr(C)]
pub(in crate::container) struct KeyValue {
    pub(in crate::container) key: Any,
    pub(in crate::container) value: Any,
}

/// The bit of `slots` that marks the small form.
pub(super) const SMALL: u64 = 1 << 63;
/// Maximum number of slots in the small form.
pub(super) const MAX_SMALL: u64 = 4;
/// No slot.
pub(super) const NONE: u64 = u64::MAX;

const _: () = assert!(size_of::<KeyValue>() == 32 && offset_of!(Body, data_deleter) == 24);
const _: () = assert!(size_of::<DenseBody>() == 56 && offset_of!(DenseBody, head) == 40);
