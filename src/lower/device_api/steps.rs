//! Sequences of driver calls that stop at the first failure.

use super::api::Call;
use super::driver::Driver;
use super::outcome::{self, Failed};
use crate::ir::{Block, FunctionBuilder, Hint, IntCC, MemFlags, Type, Value};

/// A function under construction that returns an outcome.
pub(super) struct Steps<'b, 'm> {
    pub b: &'b mut FunctionBuilder<'m>,
    /// The block that handles failures; its parameter is the outcome.
    failed: Block,
    outcome: Value,
}

impl<'b, 'm> Steps<'b, 'm> {
    pub(super) fn new(b: &'b mut FunctionBuilder<'m>) -> Self {
        let failed = b.cold_block();
        let outcome = b.block_param(failed, Type::I64);
        Steps { b, failed, outcome }
    }

    /// Calls a driver function; continues if its status is 0.
    pub(super) fn call(&mut self, driver: &Driver, call: Call, args: &[Value]) {
        let status = driver.call(self.b, call, args);
        self.require_success(call, status);
    }

    /// Continues if the status of a call is 0.
    pub(super) fn require_success(&mut self, call: Call, status: Value) {
        let fine = self.b.icmp_imm(IntCC::Eq, status, 0);
        self.require(fine, Failed::Call(call), status);
    }

    /// Continues if a condition holds.
    pub(super) fn require(&mut self, condition: Value, failed: Failed, number: Value) {
        let (next, bad) = (self.b.block(), self.b.cold_block());
        self.b.branch(condition, next, bad, Hint::Likely);
        self.b.switch_to(bad);
        let outcome = failed.with(self.b, number);
        self.b.jump(self.failed, &[outcome]);
        self.b.switch_to(next);
    }

    /// Continues if an outcome is 0.
    pub(super) fn require_outcome(&mut self, outcome: Value) {
        let next = self.b.block();
        let fine = self.b.icmp_imm(IntCC::Eq, outcome, 0);
        self.b.branch_with(fine, (next, &[]), (self.failed, &[outcome]), Hint::Likely);
        self.b.switch_to(next);
    }

    /// Continues once the driver is open.
    pub(super) fn require_open(&mut self, driver: &Driver) {
        let Some(code) = driver.require(self.b) else { return };
        let (next, bad) = (self.b.block(), self.b.cold_block());
        let fine = self.b.icmp_imm(IntCC::Eq, code, 0);
        self.b.branch(fine, next, bad, Hint::Likely);
        self.b.switch_to(bad);
        let outcome = outcome::of_code(self.b, code);
        self.b.jump(self.failed, &[outcome]);
        self.b.switch_to(next);
    }

    /// Reserves a zeroed stack slot of 8 bytes; returns its address.
    pub(super) fn place(&mut self) -> Value {
        let slot = self.b.slot(8, 8);
        let (place, zero) = (self.b.stack_addr(slot), self.b.i64(0));
        self.b.store(zero, place, 0, MemFlags::ALIGNED);
        place
    }

    /// Returns 0, or after a failure its outcome. On failure, the code of `clean_up` runs first.
    pub(super) fn finish(self, clean_up: impl FnOnce(&mut FunctionBuilder<'m>)) {
        let zero = self.b.i64(0);
        self.b.ret(Some(zero));
        self.b.switch_to(self.failed);
        clean_up(self.b);
        self.b.ret(Some(self.outcome));
    }
}
