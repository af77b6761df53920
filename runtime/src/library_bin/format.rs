//! Constants of the format.

/// The kind that stands for the library itself.
pub const LIBRARY_KIND: &str = "_lib";

/// Size of an integer of the format, in bytes.
pub(super) const WORD: u64 = 8;

/// Most bytes that a blob has with its header: what a slice may have.
pub(super) const MAX_LEN: u64 = isize::MAX as u64;
