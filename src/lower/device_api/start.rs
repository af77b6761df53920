//! Starts a launch of a kernel that is loaded.

use super::api::{Api, Call, KernelHome, LaunchForm};
use super::driver::Driver;
use super::layout::config;
use super::outcome::Failed;
use super::state;
use super::steps::Steps;
use crate::ir::{Block, Emitter, FuncRef, FuncSig, Hint, Module, StackSlot, Type, Val};

/// The greatest stream value that is not an address: NULL, `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD` (cuda.h).
const LAST_SPECIAL_STREAM: i64 = 2;

/// Memory of a launch. Code computes the address of a stack slot where it uses it, so no register has to hold it.
#[derive(Clone, Copy)]
pub(in crate::lower) enum Place<'c> {
    Slot(StackSlot),
    Address(Val<'c>),
}

impl<'c> Place<'c> {
    pub(super) fn address(self, c: Emitter<'c>) -> Val<'c> {
        match self {
            Place::Slot(slot) => c.stack_addr(slot),
            Place::Address(address) => address,
        }
    }
}

/// The computed values of a launch.
pub(in crate::lower) struct Start<'c> {
    /// A [`config`].
    pub config: Place<'c>,
    /// The array of parameter addresses.
    pub params: Place<'c>,
    /// The stream.
    pub stream: Val<'c>,
    /// The number of the device, an `I32`.
    pub device: Val<'c>,
}

impl<'c> Start<'c> {
    /// Launches a kernel by its handle, then jumps to `done`. After a failure it jumps to `failed` with the result of
    /// the call, an `I64` that [`outcome`](Self::outcome) decodes. `start` is the offset in the state of the function
    /// that launches in the device's context.
    pub(super) fn launch(
        &self,
        api: &Api,
        handle: Val<'c>,
        (state, start): (Val<'c>, Val<'c>),
        (done, failed): (Block, Block),
    ) {
        let c = handle.emitter();
        let memory = || [self.config, self.params].map(|place| place.address(c));
        if let Some(is_direct) = self.is_direct(api) {
            let [direct, in_context] = c.blocks();
            c.branch(is_direct, direct, in_context, Hint::None);
            c.switch_to(direct);
            let (callee, [config, params]) = (state.load(Type::Ptr, state::LAUNCH), memory());
            // the driver's function returns 32 bits; only `outcome` sees the others
            let sig = FuncSig::c([Type::Ptr; 4], Some(Type::I64));
            let result = c.indirect_result(sig, callee, &[config, handle, params, c.null()]);
            c.branch_with(result.truncate().is(0), (done, &[]), (failed, &[result]), Hint::Likely);
            c.switch_to(in_context);
        }
        let (callee, [config, params]) = ((state + start).load(Type::Ptr, 0), memory());
        let result = c.indirect_result(signature(), callee, &[config, handle, params, state, self.device]);
        c.branch_with(result.is(0), (done, &[]), (failed, &[result]), Hint::Likely);
    }

    /// True if [`launch`](Self::launch) calls the driver itself; `None` if an API's launches never do.
    ///
    /// A kernel runs in the context of its stream, whatever the thread's current context is. Streams that are numbers
    /// instead of addresses belong to the current context.
    fn is_direct(&self, api: &Api) -> Option<Val<'c>> {
        let may_be = (api.home, api.launch) == (KernelHome::Contexts, LaunchForm::Configuration);
        may_be.then(|| self.stream.ugt(LAST_SPECIAL_STREAM))
    }

    /// The outcome of a launch that has failed, from the result of the call.
    pub(super) fn outcome(&self, api: &Api, result: Val<'c>) -> Val<'c> {
        match self.is_direct(api) {
            Some(direct) => direct.select(Failed::Call(Call::Launch).with(result.truncate()), result),
            None => result,
        }
    }
}

/// `int64_t start(const CUlaunchConfig* config, void* kernel, void** params, void* state, int32_t device)`: the first
/// three parameters are those of `cuLaunchKernelEx`.
pub(super) fn signature() -> FuncSig {
    FuncSig::c([Type::Ptr, Type::Ptr, Type::Ptr, Type::Ptr, Type::I32], Some(Type::I64))
}

/// A function that launches a kernel in a device's context, then restores the thread's context. It returns an outcome.
/// `cooperative` selects the API's separate function for cooperative launches.
pub(super) fn start(module: &mut Module, driver: &Driver, cooperative: bool) -> FuncRef {
    let suffix = if cooperative { "_cooperative" } else { "" };
    let name = format!("__tvm_ffi_codegen_{}_start{suffix}", driver.api.name);
    let call = if cooperative { Call::LaunchCooperative } else { Call::Launch };
    module.local(name, signature(), |c| {
        let [config, kernel, params, state, device] = c.params();
        let launch = || match driver.api.launch {
            LaunchForm::Configuration => driver.call(c, call, &[config, kernel, params, c.null()]),
            LaunchForm::Arguments => {
                let mut args = vec![kernel];
                let extents = [config::GRID, config::BLOCK].into_iter().flat_map(|at| [at, at + 4, at + 8]);
                args.extend(extents.chain([config::SHARED]).map(|at| config.load(Type::I32, at)));
                args.extend([config.load(Type::Ptr, config::STREAM), params]);
                if call == Call::Launch {
                    args.push(c.null());
                }
                driver.call(c, call, &args)
            }
        };
        let steps = Steps::new(c);
        steps.call_on(driver, (state, device), call, launch);
        steps.finish(|| {});
    })
}
