//! Driver calls in a device's context (CUDA), or with a device current (HIP). They restore the thread's own setting.

use super::api::{Call, KernelHome};
use super::driver::Driver;
use super::state::{record, record_of};
use super::steps::Steps;
use crate::ir::{FunctionBuilder, Hint, IntCC, MemFlags, Type, Value};

impl Steps<'_, '_> {
    /// Calls a driver function for a device in use. `emit` emits the call and returns its status. `state` is the state
    /// of the launching module.
    pub(super) fn call_on(
        &mut self,
        driver: &Driver,
        (state, device): (Value, Value),
        call: Call,
        emit: impl Fn(&mut FunctionBuilder<'_>) -> Value,
    ) {
        let place = self.place();
        self.call(driver, Call::Current, &[place]);
        let (wanted, ty) = match driver.api.home {
            KernelHome::Contexts => {
                let record = record_of(self.b, state, device);
                (self.b.load(Type::Ptr, record, record::CONTEXT, MemFlags::ALIGNED), Type::Ptr)
            }
            KernelHome::CurrentDevice => (device, Type::I32),
        };
        let before = self.b.load(ty, place, 0, MemFlags::ALIGNED);
        let (here, elsewhere) = (self.b.block(), self.b.block());
        let same = self.b.icmp(IntCC::Eq, before, wanted);
        self.b.branch(same, here, elsewhere, Hint::Likely);
        self.b.switch_to(elsewhere);
        self.call(driver, Call::Enter, &[wanted]);
        let status = emit(self.b);
        let left = if driver.api.home == KernelHome::Contexts { place } else { before };
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
