//! Calls of TVM FFI functions from generated code: pack arguments, call, own the result. The users of this module
//! decide how to handle a nonzero code.

use super::abi::fields::before_zeros;
use super::abi::{ANY_SIZE, OBJECT_TYPE_INDEX, PAYLOAD, TYPE_INDEX, store_index, store_none};
use super::capi;
use crate::ir::{AbiParam, FuncSig, FunctionBuilder, Hint, IntCC, MemFlags, Type, Value};
use tvm_ffi_runtime::abi::TypeIndex;

/// The code for an error that the environment, such as Python, has already set (tvm/ffi/c_api.h).
pub(super) const ENVIRONMENT_ERROR: i64 = -2;

/// The prototype of a TVM FFI function, `TVMFFISafeCallType` (tvm/ffi/c_api.h).
pub(super) fn safe_call_signature() -> FuncSig {
    FuncSig {
        ret: Some(AbiParam::signed(Type::I32)),
        ..FuncSig::new([Type::Ptr, Type::Ptr, Type::I32, Type::Ptr], None)
    }
}

/// A `TVMFFIAny` on the stack, initialised to None.
pub(super) fn any_slot(b: &mut FunctionBuilder<'_>) -> Value {
    let slot = b.slot(ANY_SIZE as u32, 8);
    let slot = b.stack_addr(slot);
    store_none(b, slot);
    slot
}

/// A `TVMFFIAny` on the stack with only its type index initialised, to None. A callee requires no more
/// (tvm/ffi/c_api.h, `TVMFFISafeCallType`).
pub(super) fn index_slot(b: &mut FunctionBuilder<'_>) -> Value {
    let slot = b.slot(ANY_SIZE as u32, 8);
    let slot = b.stack_addr(slot);
    store_index(b, slot, TypeIndex::NONE);
    slot
}

/// The address of a copy of an argument, for a callee. If the caller has passed an rvalue reference to an object, the
/// copy holds the object itself, since no callee may take it. `args` is the address of the caller's arguments.
pub(super) fn copy_of_argument(b: &mut FunctionBuilder<'_>, args: Value, number: usize) -> Value {
    let slot = b.slot(ANY_SIZE as u32, 8);
    let any = b.ptr_add_imm(args, number as i64 * i64::from(ANY_SIZE));
    let index = b.load(Type::I32, any, TYPE_INDEX, MemFlags::ALIGNED);
    let refers = b.icmp_imm(IntCC::Eq, index, i64::from(TypeIndex::OBJECT_RVALUE_REF.0));
    // branch-free: if the value is no reference, its own words are read again
    let place = b.ptr_add_imm(any, i64::from(PAYLOAD));
    let payload = b.load(Type::Ptr, any, PAYLOAD, MemFlags::ALIGNED);
    let place = b.select(refers, payload, place);
    let payload = b.load(Type::Ptr, place, 0, MemFlags::ALIGNED);
    let header = b.ptr_add_imm(payload, i64::from(OBJECT_TYPE_INDEX));
    let own = b.ptr_add_imm(any, i64::from(TYPE_INDEX));
    let header = b.select(refers, header, own);
    let index = b.load(Type::I32, header, 0, MemFlags::ALIGNED);
    let plain = b.load(Type::I64, any, TYPE_INDEX, MemFlags::ALIGNED);
    let word = before_zeros(b, index);
    let word = b.select(refers, word, plain);
    let copy = b.stack_addr(slot);
    b.store(word, copy, TYPE_INDEX, MemFlags::ALIGNED);
    b.store(payload, copy, PAYLOAD, MemFlags::ALIGNED);
    copy
}

/// Calls a function object with the packed arguments at `args`; returns the code. The caller then owns the value in
/// `result`.
pub(super) fn call(
    b: &mut FunctionBuilder<'_>,
    function: Value,
    args: Value,
    num_args: i32,
    result: Value,
) -> Option<Value> {
    let call = capi::import(b.module(), capi::FUNCTION_CALL);
    let num_args = b.iconst(Type::I32, i64::from(num_args));
    b.call(call, &[function, args, num_args, result])
}

/// Releases a reference to an object.
pub(super) fn release(b: &mut FunctionBuilder<'_>, object: Value) {
    let release = capi::import(b.module(), capi::OBJECT_DEC_REF);
    b.call(release, &[object]);
}

/// Takes ownership of the raised error; NULL if there is none.
pub(super) fn take_raised(b: &mut FunctionBuilder<'_>) -> Value {
    let slot = b.slot(8, 8);
    let slot = b.stack_addr(slot);
    let null = b.ptr_const(0);
    b.store(null, slot, 0, MemFlags::ALIGNED);
    let take = capi::import(b.module(), capi::ERROR_MOVE_FROM_RAISED);
    b.call(take, &[slot]);
    b.load(Type::Ptr, slot, 0, MemFlags::ALIGNED)
}

/// Raises an owned error, which transfers its ownership.
pub(super) fn set_raised(b: &mut FunctionBuilder<'_>, error: Value) {
    let set = capi::import(b.module(), capi::ERROR_SET_RAISED);
    b.call(set, &[error]);
    release(b, error);
}

/// Takes the raised error, if there is one, and releases it.
pub(super) fn drop_raised(b: &mut FunctionBuilder<'_>) {
    let error = take_raised(b);
    let (there, next) = (b.block(), b.block());
    let raised = b.icmp_imm(IntCC::Ne, error, 0);
    b.branch(raised, there, next, Hint::None);
    b.switch_to(there);
    release(b, error);
    b.jump(next, &[]);
    b.switch_to(next);
}
