//! Constants of the format.

/// The kind of the library itself.
pub const LIBRARY_KIND: &str = "_lib";

/// Size of an integer of the format, in bytes.
pub(super) const WORD: u64 = 8;

/// The max size of a blob with its header, in bytes: that of a slice.
pub(super) const MAX_LEN: u64 = isize::MAX as u64;
