//! Compares a kernel's parameters with those that launches pass, at the kernel's first use. Needed for images that
//! don't describe their kernels.

use super::api::Call;
use super::driver::Driver;
use super::outcome::Failed;
use super::steps::Steps;
use crate::ir::{FuncRef, FuncSig, Hint, Module, Type};

/// `CUDA_ERROR_INVALID_VALUE` (cuda.h). The driver returns it for an index after the last parameter.
const INVALID_VALUE: i64 = 1;

/// The max parameter size in bytes that fits in an outcome. CUDA's parameters take at most 32,764 bytes together (CUDA
/// C++ Programming Guide, function parameters).
pub(super) const MOST_BYTES: i64 = 0xffff;

/// `int64_t compare(void* kernel, const uint32_t* sizes, int32_t count, void* state, int32_t device)`: compares the
/// sizes of a kernel's parameters with `sizes`, in bytes. Returns an outcome, which is 0 if the driver can't report
/// sizes. `None` for an API without the query.
///
/// The query needs a current context, which cuda.h doesn't state: driver 580 otherwise returns
/// `CUDA_ERROR_INVALID_CONTEXT`.
pub(super) fn compare(module: &mut Module, driver: &Driver) -> Option<FuncRef> {
    driver.api.function(Call::ParamInfo)?;
    let sig = FuncSig::c([Type::Ptr, Type::Ptr, Type::I32, Type::Ptr, Type::I32], Some(Type::I64));
    Some(driver.in_context(module, "compare", (sig, [3, 4]), |module, name, sig| {
        module.cold_local(name, sig, |c| {
            let [kernel, sizes, count, _, _] = c.params();
            let steps = Steps::new(c);
            let [asked, again, done] = c.blocks();
            let number = c.block_param(again, Type::I32);
            let zero = c.i32(0);
            c.branch(driver.has(c, Call::ParamInfo), asked, done, Hint::Likely);
            c.switch_to(asked);
            let (offset, size) = (steps.place(), steps.place());
            c.jump(again, &[zero]);

            c.switch_to(again);
            let index = number.zext();
            let status = driver.call(c, Call::ParamInfo, &[kernel, index, offset, size]);
            let [known, ended] = c.blocks();
            c.branch(status.is(INVALID_VALUE), ended, known, Hint::None);
            c.switch_to(ended);
            steps.require(number.is(count), Failed::FewerParams, number);
            c.jump(done, &[]);
            c.switch_to(known);
            steps.require_success(Call::ParamInfo, status);
            steps.require(number.ult(count), Failed::MoreParams, count);
            let expected = (sizes + index * 4).load(Type::I32, 0).zext();
            let size = size.load(Type::I64, 0);
            let same = size.is(expected);
            let bytes = size & MOST_BYTES;
            let both = ((index << 16) | bytes).truncate();
            steps.require(same, Failed::ParamSize, both);
            c.jump(again, &[number + 1]);

            c.switch_to(done);
            steps.finish(|| {});
        })
    }))
}
