//! Calls in the context of a device (CUDA) or with a device current (HIP), which leave the thread's as it was.

use super::api::Call;
use super::driver::Driver;
use super::state::{record, record_of};
use super::steps::Steps;
use crate::ir::{FunctionBuilder, Hint, IntCC, MemFlags, Type, Value};

impl Steps<'_, '_> {
    /// Calls a function of the driver for a device that is in use, by `emit`, which gives the status. `state` is that of the module that launches.
    pub(super) fn call_on(
        &mut self,
        driver: &Driver,
        (state, device): (Value, Value),
        call: Call,
        emit: impl Fn(&mut FunctionBuilder<'_>) -> Value,
    ) {
        let place = self.place();
        self.call(driver, Call::Current, &[place]);
        let (wanted, ty) = match driver.api.has_contexts {
            true => {
                let record = record_of(self.b, state, device);
                (self.b.load(Type::Ptr, record, record::CONTEXT, MemFlags::ALIGNED), Type::Ptr)
            }
            false => (device, Type::I32),
        };
        let before = self.b.load(ty, place, 0, MemFlags::ALIGNED);
        let (here, elsewhere) = (self.b.block(), self.b.block());
        let same = self.b.icmp(IntCC::Eq, before, wanted);
        self.b.branch(same, here, elsewhere, Hint::Likely);
        self.b.switch_to(elsewhere);
        self.call(driver, Call::Enter, &[wanted]);
        let status = emit(self.b);
        let left = if driver.api.has_contexts { place } else { before };
        let left = driver.call(self.b, Call::Leave, &[left]);
        self.require_success(call, status);
        self.require_success(Call::Leave, left);
        let done = self.b.block();
        self.b.jump(done, &[]);
        self.b.switch_to(here);
        let status = emit(self.b);
        self.require_success(call, status);
        self.b.jump(done, &[]);
        self.b.switch_to(done);
    }
}
