//! Starts a launch if the thread's current context or device may be a different one.

use super::api::{Call, LaunchForm};
use super::driver::Driver;
use super::layout::config;
use super::steps::Steps;
use crate::ir::{FuncRef, FuncSig, Module, Type};

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
