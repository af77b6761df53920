//! Calls of TVM FFI functions from generated code: pack arguments, call, own the result. The users of this module
//! decide how to handle a nonzero code.

use super::abi::fields::before_zeros;
use super::abi::{ANY_SIZE, OBJECT_TYPE_INDEX, PAYLOAD, TYPE_INDEX, store_index, store_none};
use super::capi;
use crate::ir::{AbiParam, Emitter, FuncSig, FunctionBuilder, IntCC, MemFlags, Type, Val, Value};
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
pub(super) fn any_slot(c: Emitter<'_>) -> Val<'_> {
    let slot = c.slot(ANY_SIZE as usize);
    c.with(|b| store_none(b, slot.value()));
    slot
}

/// A `TVMFFIAny` on the stack with only its type index initialised, to None. A callee requires no more
/// (tvm/ffi/c_api.h, `TVMFFISafeCallType`).
pub(super) fn index_slot(c: Emitter<'_>) -> Val<'_> {
    let slot = c.slot(ANY_SIZE as usize);
    c.with(|b| store_index(b, slot.value(), TypeIndex::NONE));
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
pub(super) fn call<'c>(c: Emitter<'c>, function: Val<'c>, args: Val<'c>, num_args: i32, result: Val<'c>) -> Val<'c> {
    capi::result(c, capi::FUNCTION_CALL, &[function, args, c.i32(i64::from(num_args)), result])
}

/// Releases a reference to an object.
pub(super) fn release<'c>(c: Emitter<'c>, object: Val<'c>) {
    capi::call(c, capi::OBJECT_DEC_REF, &[object]);
}

/// Takes ownership of the raised error; NULL if there is none.
pub(super) fn take_raised(c: Emitter<'_>) -> Val<'_> {
    let error = c.var(Type::Ptr);
    error.set(c.null());
    capi::call(c, capi::ERROR_MOVE_FROM_RAISED, &[error.address()]);
    error.get()
}

/// Raises an owned error, which transfers its ownership.
pub(super) fn set_raised<'c>(c: Emitter<'c>, error: Val<'c>) {
    capi::call(c, capi::ERROR_SET_RAISED, &[error]);
    release(c, error);
}

/// Takes the raised error, if there is one, and releases it.
pub(super) fn drop_raised(c: Emitter<'_>) {
    let error = take_raised(c);
    c.when(error.is_not(0), || release(c, error));
}
