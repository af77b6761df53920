//! The blocks of a body's text, inside of which values are known.

/// The number of a block of the body's own text: the whole body, the inside of a loop or of a conditional.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Scope(pub u32);

impl Scope {
    /// The whole body, with what is known from its beginning.
    pub(super) const BODY: Scope = Scope(0);
}
