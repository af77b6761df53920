//! Requests for indices of types.

/// Value of `parent` that asks for a lookup only, and the answer of a lookup that finds nothing.
pub const QUERY_ONLY: i32 = -2;

/// A request for a type's index (`TVMFFITypeGetOrAllocIndex`).
#[derive(Copy, Clone, Debug)]
pub struct TypeRequest<'a> {
    /// The type key, which C code need not make UTF-8.
    pub key: &'a [u8],
    /// A fixed index, or -1 for one that is allocated.
    pub static_index: i32,
    /// Number of ancestors.
    pub depth: i32,
    /// Slots to reserve for child types.
    pub num_child_slots: i32,
    /// Whether children may go beyond the reserved slots.
    pub child_slots_can_overflow: bool,
    /// The parent's index, -1 for a root, or [`QUERY_ONLY`].
    pub parent: i32,
}
