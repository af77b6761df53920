//! The encoding of TMA descriptors by the driver.

use super::api::Call;
use super::driver::Driver;
use super::steps::Steps;
use crate::ir::{FuncRef, FuncSig, FunctionBuilder, Linkage, Module, Type};

/// The types of `cuTensorMapEncodeTiled`'s parameters (cuda.h).
const PARAMS: [Type; 12] = {
    let (ptr, int) = (Type::Ptr, Type::I32);
    [ptr, int, int, ptr, ptr, ptr, ptr, ptr, int, int, int, int]
};

/// A function with the parameters of `cuTensorMapEncodeTiled` and the number of a device: encodes a tensor map in the context of the device; an outcome.
///
/// A thread without a context gets `CUDA_ERROR_INVALID_CONTEXT` from the driver, though cuda.h says nothing of contexts.
pub(super) fn encode(module: &mut Module, driver: &Driver) -> FuncRef {
    let name = format!("__tvm_ffi_codegen_{}_tensor_map", driver.api.name);
    if let Some((known, _)) = module.function_named(&name) {
        return known;
    }
    let sig = FuncSig::c(PARAMS.into_iter().chain([Type::I32]), Some(Type::I64));
    let func = module.declare(name, sig, Linkage::Local);
    let mut builder = FunctionBuilder::new(module, func);
    let args: Vec<_> = (0..PARAMS.len()).map(|i| builder.param(i)).collect();
    let device = builder.param(PARAMS.len());
    let mut steps = Steps::new(&mut builder);
    steps.call_on(driver, device, Call::TensorMap, |b| driver.call(b, Call::TensorMap, &args));
    steps.finish(|_| {});
    builder.finish()
}
