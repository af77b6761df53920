//! Questions of code about devices of an API.

use super::driver;
use super::layout::MOST_DEVICES;
use super::state::{record, record_of};
use crate::ir::{Block, DataRef, FuncRef, Hint, Type, Val};

/// The questions of a module about devices of one API.
#[derive(Clone, Copy, Debug)]
pub(in crate::lower) struct DeviceQuestions {
    pub(super) state: DataRef,
    /// The helper that does a device's first-use work.
    pub(super) device: FuncRef,
    /// The helper that raises errors.
    pub(super) report: FuncRef,
}

impl DeviceQuestions {
    /// The compute capability of a device (an `I32`) as an `I64`: ten times the major number, plus the minor one. Does
    /// the device's first-use work unless it is done. If that fails, raises an error and jumps to `exit` with its code.
    /// The C string at `caller` begins the error's message.
    pub(in crate::lower) fn capability<'c>(self, device: Val<'c>, caller: (DataRef, u32), exit: Block) -> Val<'c> {
        let c = device.emitter();
        let [look, ready] = c.blocks();
        let (empty, failed) = (c.cold_block(), c.cold_block());
        let of_device = || record_of(c.data(self.state, 0), device);
        c.branch(device.ult(MOST_DEVICES), look, empty, Hint::Likely);
        c.switch_to(look);
        c.branch(of_device().load_acquire().ugt(driver::CLAIMED as i64), ready, empty, Hint::Likely);
        c.switch_to(empty);
        let outcome = c.result(self.device, &[c.data(self.state, 0), device]);
        c.branch(outcome.is(0), ready, failed, Hint::Likely);
        c.switch_to(failed);
        // without a kernel there are neither images nor a launch
        let (pool, at) = caller;
        let args = [c.data(pool, at), c.null(), outcome, c.null(), device];
        c.jump(exit, &[c.result(self.report, &args)]);
        c.switch_to(ready);
        of_device().load(Type::I32, record::CAPABILITY).sext()
    }
}
