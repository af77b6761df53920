//! Requests for indices of types.

/// Value of `parent` for a lookup that registers nothing. Such a lookup also returns it if the type doesn't exist.
pub const QUERY_ONLY: i32 = -2;

/// A request for a type's index (`TVMFFITypeGetOrAllocIndex`).
#[derive(Copy, Clone, Debug)]
pub struct TypeRequest<'a> {
    /// The type key. C code may pass one that is not UTF-8.
    pub key: &'a [u8],
    /// A fixed index, or -1 to allocate one.
    pub static_index: i32,
    /// Number of ancestors.
    pub depth: i32,
    /// Slots to reserve for child types.
    pub num_child_slots: i32,
    /// True if more child types may be registered than there are reserved slots.
    pub child_slots_can_overflow: bool,
    /// The parent's index, -1 for a root, or [`QUERY_ONLY`].
    pub parent: i32,
}
