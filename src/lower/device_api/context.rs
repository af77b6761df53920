//! Driver calls in a device's context (CUDA), or with a device current (HIP). They restore the thread's own setting.

use super::api::{Call, KernelHome};
use super::driver::Driver;
use super::state::{record, record_of};
use super::steps::Steps;
use crate::ir::{FuncRef, FuncSig, Hint, Module, Type, Val};

impl<'c> Steps<'c> {
    /// Calls a driver function for a device in use. `emit` emits the call and returns its status. `state` is the state
    /// of the launching module.
    pub(super) fn call_on(
        self,
        driver: &Driver,
        (state, device): (Val<'c>, Val<'c>),
        call: Call,
        emit: impl Fn() -> Val<'c>,
    ) {
        self.in_context(driver, (state, device), emit, |status| self.require_success(call, status));
    }

    /// Runs code for a device in use: `emit` emits the code and returns its result, which `require` checks once the
    /// thread's own setting is restored.
    pub(super) fn in_context(
        self,
        driver: &Driver,
        (state, device): (Val<'c>, Val<'c>),
        emit: impl Fn() -> Val<'c>,
        require: impl Fn(Val<'c>),
    ) {
        let c = self.c;
        let place = self.place();
        self.call(driver, Call::Current, &[place]);
        let wanted = match driver.api.home {
            KernelHome::Contexts => record_of(state, device).load(Type::Ptr, record::CONTEXT),
            KernelHome::CurrentDevice => device,
        };
        let before = place.load(wanted.ty(), 0);
        let [here, elsewhere] = c.blocks();
        c.branch(before.is(wanted), here, elsewhere, Hint::Likely);
        c.switch_to(elsewhere);
        self.call(driver, Call::Enter, &[wanted]);
        let result = emit();
        let left = match driver.api.home {
            KernelHome::Contexts => place,
            KernelHome::CurrentDevice => before,
        };
        let left = driver.call(c, Call::Leave, &[left]);
        require(result);
        self.require_success(Call::Leave, left);
        let done = c.block();
        c.jump(done, &[]);
        c.switch_to(here);
        require(emit());
        c.jump(done, &[]);
        c.switch_to(done);
    }
}

impl Driver {
    /// Defines a function that runs another one for a device in use, as [`Steps::in_context`] does. Both have the same
    /// parameters and return an outcome. `places` are the numbers of the parameters for the state and the device.
    pub(super) fn in_context(
        &self,
        module: &mut Module,
        name: &str,
        (sig, places): (FuncSig, [usize; 2]),
        define: impl FnOnce(&mut Module, String, FuncSig) -> FuncRef,
    ) -> FuncRef {
        let name = format!("__tvm_ffi_codegen_{}_{name}", self.api.name);
        let inner = define(module, format!("{name}_inside"), sig.clone());
        let count = sig.params.len();
        module.local(name, sig, |c| {
            let args: Vec<_> = (0..count).map(|number| c.param(number)).collect();
            let steps = Steps::new(c);
            let [state, device] = places.map(|place| args[place]);
            let run = || c.result(inner, &args);
            steps.in_context(self, (state, device), run, |outcome| steps.require_outcome(outcome));
            steps.finish(|| {});
        })
    }
}
