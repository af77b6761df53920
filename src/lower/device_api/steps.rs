//! Sequences of driver calls that stop at the first failure.

use super::api::Call;
use super::driver::Driver;
use super::outcome::{self, Failed};
use crate::ir::{Block, Emitter, Type, Val};

/// A function under construction that returns an outcome.
#[derive(Clone, Copy)]
pub(super) struct Steps<'c> {
    pub c: Emitter<'c>,
    /// The block that handles failures; its parameter is the outcome.
    failed: Block,
    outcome: Val<'c>,
}

impl<'c> Steps<'c> {
    pub(super) fn new(c: Emitter<'c>) -> Self {
        let failed = c.cold_block();
        Steps { c, failed, outcome: c.block_param(failed, Type::I64) }
    }

    /// Calls a driver function; continues if its status is 0.
    pub(super) fn call(self, driver: &Driver, call: Call, args: &[Val<'c>]) {
        self.require_success(call, driver.call(self.c, call, args));
    }

    /// Continues if the status of a call is 0.
    pub(super) fn require_success(self, call: Call, status: Val<'c>) {
        self.require(status.is(0), Failed::Call(call), status);
    }

    /// Continues if a condition holds.
    pub(super) fn require(self, condition: Val<'c>, failed: Failed, number: Val<'c>) {
        self.c.require(condition, || self.c.jump(self.failed, &[failed.with(number)]));
    }

    /// Continues if an outcome is 0.
    pub(super) fn require_outcome(self, outcome: Val<'c>) {
        self.c.or_fail(outcome.is(0), self.failed, &[outcome]);
    }

    /// Continues once the driver is open.
    pub(super) fn require_open(self, driver: &Driver) {
        let code = driver.require(self.c);
        self.c.require(code.is(0), || self.c.jump(self.failed, &[outcome::of_code(code)]));
    }

    /// Reserves a zeroed stack slot of 8 bytes; returns its address.
    pub(super) fn place(self) -> Val<'c> {
        let place = self.c.slot(8);
        place.store(0, self.c.i64(0));
        place
    }

    /// Returns 0, or after a failure its outcome. On failure, the code of `clean_up` runs first.
    pub(super) fn finish(self, clean_up: impl FnOnce()) {
        self.c.ret(self.c.i64(0));
        self.c.switch_to(self.failed);
        clean_up();
        self.c.ret(self.outcome);
    }
}
