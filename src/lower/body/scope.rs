//! The blocks of a body that delimit where values are known.

/// The id of a block of the body: the whole body, or the inside of a loop or conditional.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Scope(pub u32);

impl Scope {
    /// The whole body; its values are known from the start.
    pub(super) const BODY: Scope = Scope(0);
}
