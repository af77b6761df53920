//! Compares a kernel's parameters with those that launches pass, at the kernel's first use. Needed for images that
//! don't describe their kernels.

use super::api::Call;
use super::driver::Driver;
use super::outcome::Failed;
use super::steps::Steps;
use crate::ir::{BinaryOp, ConvertOp, FuncRef, FuncSig, FunctionBuilder, IntCC, Linkage, MemFlags, Module, Type};

/// `CUDA_ERROR_INVALID_VALUE` (cuda.h). The driver returns it for an index after the last parameter.
const INVALID_VALUE: i64 = 1;

/// The max parameter size in bytes that fits in an outcome. CUDA's parameters take at most 32,764 bytes together (CUDA
/// C++ Programming Guide, function parameters).
pub(super) const MOST_BYTES: i64 = 0xffff;

/// `int64_t compare(void* kernel, const uint32_t* sizes, int32_t count)`: compares the sizes of a kernel's parameters
/// with `sizes`, in bytes. Returns an outcome, which is 0 if the driver can't report sizes. `None` for an API without
/// the query.
pub(super) fn compare(module: &mut Module, driver: &Driver) -> Option<FuncRef> {
    driver.api.function(Call::ParamInfo)?;
    let name = format!("__tvm_ffi_codegen_{}_compare", driver.api.name);
    let sig = FuncSig::c([Type::Ptr, Type::Ptr, Type::I32], Some(Type::I64));
    let func = module.declare(name, sig, Linkage::Local);
    module.functions[func].cold = true;
    let mut builder = FunctionBuilder::new(module, func);
    let [kernel, sizes, count] = [0, 1, 2].map(|i| builder.param(i));
    let mut steps = Steps::new(&mut builder);
    let (asked, again, done) = (steps.b.block(), steps.b.block(), steps.b.block());
    let number = steps.b.block_param(again, Type::I32);
    let zero = steps.b.iconst(Type::I32, 0);
    let there = driver.has(steps.b, Call::ParamInfo);
    steps.b.branch(there, asked, done, crate::ir::Hint::Likely);
    steps.b.switch_to(asked);
    let (offset, size) = (steps.place(), steps.place());
    steps.b.jump(again, &[zero]);

    steps.b.switch_to(again);
    let index = steps.b.convert(ConvertOp::ZExt, Type::I64, number);
    let status = driver.call(steps.b, Call::ParamInfo, &[kernel, index, offset, size]);
    let (known, ended) = (steps.b.block(), steps.b.block());
    let is_end = steps.b.icmp_imm(IntCC::Eq, status, INVALID_VALUE);
    steps.b.branch(is_end, ended, known, crate::ir::Hint::None);
    steps.b.switch_to(ended);
    let all = steps.b.icmp(IntCC::Eq, number, count);
    steps.require(all, Failed::FewerParams, number);
    steps.b.jump(done, &[]);
    steps.b.switch_to(known);
    steps.require_success(Call::ParamInfo, status);
    let passed = steps.b.icmp(IntCC::ULt, number, count);
    steps.require(passed, Failed::MoreParams, count);
    let at = steps.b.binary_imm(BinaryOp::Mul, index, 4);
    let at = steps.b.ptr_add(sizes, at);
    let expected = steps.b.load(Type::I32, at, 0, MemFlags::ALIGNED);
    let expected = steps.b.convert(ConvertOp::ZExt, Type::I64, expected);
    let size = steps.b.load(Type::I64, size, 0, MemFlags::ALIGNED);
    let same = steps.b.icmp(IntCC::Eq, size, expected);
    let bytes = steps.b.binary_imm(BinaryOp::And, size, MOST_BYTES);
    let both = steps.b.binary_imm(BinaryOp::Shl, index, 16);
    let both = steps.b.binary(BinaryOp::Or, both, bytes);
    let both = steps.b.convert(ConvertOp::Truncate, Type::I32, both);
    steps.require(same, Failed::ParamSize, both);
    let after = steps.b.binary_imm(BinaryOp::Add, number, 1);
    steps.b.jump(again, &[after]);

    steps.b.switch_to(done);
    steps.finish(|_| {});
    Some(builder.finish())
}
