//! Calls of TVM FFI functions from generated code: pack arguments, call, own the result. The users of this module
//! decide how to handle a nonzero code.

use super::abi::{ANY_SIZE, store_index, store_none};
use super::capi;
use crate::ir::{AbiParam, Emitter, FuncSig, Type, Val};
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
