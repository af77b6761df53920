//! The time for which a value of a body is usable: while the block that created it is open, and while its owner still
//! has the value that it is part of.

use std::collections::{HashMap, HashSet};

use super::scope::Scope;
use crate::ir::{Block, Value};

/// The limits of a value's use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub scope: Scope,
    /// The owner, if the value is inside an owned value.
    pub part_of: Option<PartOf>,
}

impl Life {
    /// The life of the function's parameters, which the caller owns.
    pub(super) const BODY: Life = Life { scope: Scope::BODY, part_of: None };
}

/// The owner of a part, and its state when the part was created.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartOf {
    /// The owner's address in the frame.
    pub any: Value,
    /// The number of values that the owner had been given.
    pub given: u32,
    /// The number of loops that were open.
    pub loops: usize,
}

/// Why a value is no longer usable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// Its block has ended.
    Block,
    /// The value, or the value that it is part of, has been moved.
    Moved,
    /// The variable that it is part of has a new value.
    Replaced,
}

impl Ended {
    /// The error for using the value; `in_a_block` is the text for a block that has ended.
    pub(super) fn problem(self, in_a_block: impl Into<String>) -> String {
        match self {
            Ended::Block => in_a_block.into(),
            Ended::Moved => "the value has been moved".to_owned(),
            Ended::Replaced => "the variable that the value is part of has been given another value".to_owned(),
        }
    }
}

/// The state of a body's owned values, by their addresses in the frame.
#[derive(Default)]
pub(super) struct Owners {
    pub places: HashMap<Value, OwnedState>,
    /// Addresses, each with a loop that uses a part created before the loop.
    pub used_in_loops: HashSet<(Value, Block)>,
}

/// The state of the owned value at an address.
#[derive(Clone, Copy, Default)]
pub(super) struct OwnedState {
    /// The number of values that it has been given.
    pub given: u32,
    pub moved: bool,
}

impl Owners {
    pub(super) fn place(&self, any: Value) -> OwnedState {
        self.places.get(&any).copied().unwrap_or_default()
    }
}
