//! Facts about code that all backends share.

use crate::ir::LocationRef;

/// Alignment of exported functions in bytes. Starting at a cache line keeps the speed of a short function
/// independent of the code before it.
pub(super) const CACHE_LINE: u32 = 64;

/// Code of one source location.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lines {
    /// Where the code begins, in bytes from the function's start.
    pub start: u32,
    /// Where the code ends, in bytes from the function's start.
    pub end: u32,
    /// The location, one of the module's.
    pub location: LocationRef,
}
