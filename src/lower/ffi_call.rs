//! Calls of TVM FFI functions from generated code: pack arguments, call, own the result. The caller of this module decides what becomes
//! of a code that is not 0.

use super::abi::{ANY_SIZE, store_index, store_none};
use super::capi;
use crate::ir::{AbiParam, FuncSig, FunctionBuilder, Type, Value};
use tvm_ffi_runtime::abi::TypeIndex;

/// The prototype of a TVM FFI function, `TVMFFISafeCallType` (tvm/ffi/c_api.h).
pub(super) fn safe_call_signature() -> FuncSig {
    FuncSig {
        ret: Some(AbiParam::signed(Type::I32)),
        ..FuncSig::new([Type::Ptr, Type::Ptr, Type::I32, Type::Ptr], None)
    }
}

/// A `TVMFFIAny` in the frame, None at first.
pub(super) fn any_slot(b: &mut FunctionBuilder<'_>) -> Value {
    let slot = b.slot(ANY_SIZE as u32, 8);
    let slot = b.stack_addr(slot);
    store_none(b, slot);
    slot
}

/// A `TVMFFIAny` in the frame whose type index says None at first: all that a callee asks for (tvm/ffi/c_api.h, `TVMFFISafeCallType`).
pub(super) fn index_slot(b: &mut FunctionBuilder<'_>) -> Value {
    let slot = b.slot(ANY_SIZE as u32, 8);
    let slot = b.stack_addr(slot);
    store_index(b, slot, TypeIndex::NONE);
    slot
}

/// Calls a function object with the packed arguments at `args`; gives the code. What `result` then holds is owned by the caller.
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

/// Gives up a reference to an object.
pub(super) fn release(b: &mut FunctionBuilder<'_>, object: Value) {
    let release = capi::import(b.module(), capi::OBJECT_DEC_REF);
    b.call(release, &[object]);
}
