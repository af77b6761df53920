//! The places in a body's frame where the launches of a graph are noted.

use super::super::device_api::{BYTES_OF_SHOT, clear_shot};
use crate::ir::{FunctionBuilder, StackSlot, Value};

/// The place in the frame where a launch of a graph is noted.
#[derive(Clone, Copy)]
pub(in crate::lower) struct Shot {
    /// The slot of all launches of the graph.
    slot: StackSlot,
    number: u32,
}

impl Shot {
    /// The next one in a slot with room for `number` launches so far. The slot grows.
    pub(in crate::lower) fn next(b: &mut FunctionBuilder<'_>, slot: StackSlot, number: u32) -> Self {
        b.grow_slot(slot, (number + 1).saturating_mul(BYTES_OF_SHOT));
        Shot { slot, number }
    }

    /// The address of its place.
    pub(super) fn address(self, b: &mut FunctionBuilder<'_>) -> Value {
        b.stack_addr_at(self.slot, self.number * BYTES_OF_SHOT)
    }
}

/// A slot for the launches of a graph.
pub(in crate::lower) fn slot(b: &mut FunctionBuilder<'_>) -> StackSlot {
    b.slot(BYTES_OF_SHOT, 8)
}

/// Notes in a slot that none of its launches has happened.
pub(in crate::lower) fn clear(b: &mut FunctionBuilder<'_>, slot: StackSlot, count: u32) {
    for number in 0..count {
        let address = Shot { slot, number }.address(b);
        b.structured(|c| clear_shot(c.val(address)));
    }
}
