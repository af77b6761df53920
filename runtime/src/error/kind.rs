//! Kinds of errors that this crate raises. Upstream's Python maps them to its own classes.

/// A value has the wrong type.
pub const TYPE_ERROR: &str = "TypeError";
/// A value is wrong.
pub const VALUE_ERROR: &str = "ValueError";
/// An operation failed.
pub const RUNTIME_ERROR: &str = "RuntimeError";
/// A panic, or a broken invariant of the runtime.
pub const INTERNAL_ERROR: &str = "InternalError";
/// A missing name.
pub const KEY_ERROR: &str = "KeyError";
/// A number is out of bounds.
pub const INDEX_ERROR: &str = "IndexError";
/// Memory could not be allocated.
pub const MEMORY_ERROR: &str = "MemoryError";
