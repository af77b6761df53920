//! The result of linking objects into this process, for all linkers.

use crate::engine::code::KeepAlive;

/// Objects in this process.
pub(in crate::engine) struct LoadedObjects {
    /// The addresses of the kernels' symbols.
    pub(in crate::engine) symbols: Vec<(String, usize)>,
    /// The owner of the memory.
    pub(in crate::engine) owner: KeepAlive,
}
