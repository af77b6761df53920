//! Starts a launch if the thread's current context or device may be a different one.

use super::api::{Call, LaunchForm};
use super::driver::Driver;
use super::layout::config;
use super::steps::Steps;
use crate::ir::{FuncRef, FuncSig, FunctionBuilder, Linkage, MemFlags, Module, Type};

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
    let func = module.declare(name, signature(), Linkage::Local);
    let mut builder = FunctionBuilder::new(module, func);
    let [config, kernel, params, state, device] = [0, 1, 2, 3, 4].map(|i| builder.param(i));
    let call = if cooperative { Call::LaunchCooperative } else { Call::Launch };
    let launch = |b: &mut FunctionBuilder<'_>| match driver.api.launch {
        LaunchForm::Configuration => {
            let null = b.ptr_const(0);
            driver.call(b, call, &[config, kernel, params, null])
        }
        LaunchForm::Arguments => {
            let mut args = vec![kernel];
            let extents = [config::GRID, config::BLOCK].into_iter().flat_map(|at| [at, at + 4, at + 8]);
            for at in extents.chain([config::SHARED]) {
                args.push(b.load(Type::I32, config, at, MemFlags::ALIGNED));
            }
            args.extend([b.load(Type::Ptr, config, config::STREAM, MemFlags::ALIGNED), params]);
            if call == Call::Launch {
                args.push(b.ptr_const(0));
            }
            driver.call(b, call, &args)
        }
    };
    let mut steps = Steps::new(&mut builder);
    steps.call_on(driver, (state, device), call, launch);
    steps.finish(|_| {});
    builder.finish()
}
