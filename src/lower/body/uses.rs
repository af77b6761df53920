//! Uses of owned values and their parts: each use checks that the value is still usable, and each move is recorded.

use super::expr::Ops;
use super::function::BodyLowerer;
use super::life::{Ended, Life, OwnedState, PartOf};
use crate::ir::Value;

impl BodyLowerer<'_> {
    /// A part of the current value at an address.
    fn part_of(&self, any: Value) -> PartOf {
        PartOf { any, given: self.owners.place(any).given, loops: self.exits.loops() }
    }

    /// Whether the value at an address has been moved.
    pub(super) fn is_moved(&self, any: Value) -> bool {
        self.owners.place(any).moved
    }

    /// Uses a part: returns why it can't be used, or `None` if its owner still has it.
    fn use_part(&mut self, part: PartOf) -> Option<Ended> {
        let place = self.owners.place(part.any);
        if place.given != part.given {
            return Some(Ended::Replaced);
        }
        if place.moved {
            return Some(Ended::Moved);
        }
        // record the loop, because its next turn uses the part again
        if let Some(outermost) = self.exits.loop_at(part.loops) {
            self.owners.used_in_loops.insert((part.any, outermost));
        }
        None
    }

    /// Records that the value at an address is moved. Returns `false` if the next turn of a loop would use a part of
    /// it.
    pub(super) fn move_out(&mut self, any: Value) -> bool {
        self.owners.places.entry(any).or_default().moved = true;
        self.may_change(any)
    }

    /// Records a new value at an address. Returns `false` if the next turn of a loop would use a part of the old value.
    pub(super) fn give(&mut self, any: Value) -> bool {
        let place = self.owners.places.entry(any).or_default();
        *place = OwnedState { given: place.given + 1, moved: false };
        self.may_change(any)
    }

    fn may_change(&self, any: Value) -> bool {
        let used_in = |looped| self.owners.used_in_loops.contains(&(any, looped));
        self.owners.used_in_loops.is_empty() || !self.exits.open_loops().any(used_in)
    }
}

impl dyn Ops + '_ {
    /// The life of a value created here.
    pub(super) fn life(&self) -> Life {
        Life { scope: self.scope(), part_of: None }
    }

    /// The life of a part, created here, of the value at an address in the frame.
    pub(super) fn life_of_part(&self, any: Value) -> Life {
        Life { scope: self.scope(), part_of: self.emit(|l| Some(l.part_of(any))) }
    }

    /// Uses a value: returns why it can't be used here, or `None` if it can.
    pub(super) fn use_of(&self, life: Life) -> Option<Ended> {
        if !self.is_open(life.scope) {
            return Some(Ended::Block);
        }
        let part = life.part_of?;
        self.emit(|l| l.use_part(part))
    }
}
