//! The good path's conditions. Each is a branch of its own, so that what it compares stays in memory until then; all lead to one place
//! where they don't hold: what exactly is wrong, if anything, is found out [there](super::support::bind).

use super::wrapper::Lowerer;
use crate::ir::{Hint, IntCC, Value};

impl Lowerer<'_> {
    /// Goes on where a `Bool` holds.
    pub(super) fn require(&mut self, condition: Value) {
        let next = self.b.block();
        self.b.branch(condition, next, self.doubt, Hint::Likely);
        self.b.switch_to(next);
    }

    /// Goes on where two integers of one type are equal.
    pub(super) fn require_equal(&mut self, a: Value, b: Value) {
        let equal = self.b.icmp(IntCC::Eq, a, b);
        self.require(equal);
    }

    /// Goes on where an integer is 0.
    pub(super) fn require_zero(&mut self, value: Value) {
        let zero = self.b.icmp_imm(IntCC::Eq, value, 0);
        self.require(zero);
    }

    /// Goes on where a pointer is not NULL.
    pub(super) fn require_there(&mut self, pointer: Value) {
        let there = self.b.icmp_imm(IntCC::Ne, pointer, 0);
        self.require(there);
    }

    /// Goes on where an `I64` is not negative.
    pub(super) fn require_non_negative(&mut self, value: Value) {
        let fine = self.b.icmp_imm(IntCC::SGe, value, 0);
        self.require(fine);
    }
}
