//! Encodes TMA descriptors with the driver.

use super::api::Call;
use super::driver::Driver;
use super::steps::Steps;
use crate::ir::{FuncRef, FuncSig, Module, Type};

/// The types of `cuTensorMapEncodeTiled`'s parameters (cuda.h).
const PARAMS: [Type; 12] = {
    let (ptr, int) = (Type::Ptr, Type::I32);
    [ptr, int, int, ptr, ptr, ptr, ptr, ptr, int, int, int, int]
};

/// The prototype of the function that encodes tensor maps: the [state](super::state), the parameters of
/// `cuTensorMapEncodeTiled`, and a device number.
pub(super) fn signature() -> FuncSig {
    FuncSig::c([Type::Ptr].into_iter().chain(PARAMS).chain([Type::I32]), Some(Type::I64))
}

/// A function that encodes a tensor map in a device's context and returns an outcome. `None` for an API without tensor
/// maps.
///
/// The context is needed: without one the driver returns `CUDA_ERROR_INVALID_CONTEXT`, although cuda.h doesn't mention
/// contexts.
pub(super) fn encode(module: &mut Module, driver: &Driver) -> Option<FuncRef> {
    driver.api.function(Call::TensorMap)?;
    let name = format!("__tvm_ffi_codegen_{}_tensor_map", driver.api.name);
    Some(module.local(name, signature(), |c| {
        let state = c.param(0);
        let args: Vec<_> = (1..=PARAMS.len()).map(|i| c.param(i)).collect();
        let device = c.param(PARAMS.len() + 1);
        let steps = Steps::new(c);
        steps.call_on(driver, (state, device), Call::TensorMap, || driver.call(c, Call::TensorMap, &args));
        steps.finish(|| {});
    }))
}
