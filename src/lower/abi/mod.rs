//! The memory layouts of the C ABI (tvm/ffi/c_api.h, dlpack.h): offsets and widths of the fields that generated code
//! accesses.

pub(super) mod fields;

use std::mem::offset_of;

use super::half;
use crate::ir::{ConvertOp, Emitter, FunctionBuilder, MemFlags, PointerFacts, Type, Val, Value};
use crate::spec::{ScalarKind, ScalarType};
use fields::pair;
use tvm_ffi_runtime::abi::{
    DLDevice, DLTensor, TVMFFIAny, TVMFFIByteArray, TVMFFIObject, TVMFFISeqCell, TVMFFIShapeCell, TypeIndex,
};

/// Size of a `TVMFFIAny`.
pub(super) const ANY_SIZE: i32 = size_of::<TVMFFIAny>() as i32;
/// Offset of its payload.
pub(super) const PAYLOAD: i32 = offset_of!(TVMFFIAny, v) as i32;
/// Offset of its type index.
pub(super) const TYPE_INDEX: i32 = offset_of!(TVMFFIAny, type_index) as i32;

/// Size of an object's header. The object's cell follows it.
pub(super) const HEADER: i32 = size_of::<TVMFFIObject>() as i32;

/// Offset of the data pointer of a Shape's, a sequence's or a string's cell, from the object's address.
pub(super) const CELL_DATA: i32 = HEADER;
/// Offset of the number of entries, elements or bytes of such a cell.
pub(super) const CELL_SIZE: i32 = HEADER + 8;
const _: () = assert!(offset_of!(TVMFFIShapeCell, data) == 0 && offset_of!(TVMFFIShapeCell, size) == 8);
const _: () = assert!(offset_of!(TVMFFISeqCell, data) == 0 && offset_of!(TVMFFISeqCell, size) == 8);
const _: () = assert!(offset_of!(TVMFFIByteArray, data) == 0 && offset_of!(TVMFFIByteArray, size) == 8);

/// Offset of the type index in an object's header.
pub(super) const OBJECT_TYPE_INDEX: i32 = offset_of!(TVMFFIObject, type_index) as i32;

/// Offsets of the fields of an error's cell, from the object's address.
pub(super) mod error {
    use super::{HEADER, offset_of};
    use tvm_ffi_runtime::abi::TVMFFIErrorCell;

    pub const KIND: i32 = HEADER + offset_of!(TVMFFIErrorCell, kind) as i32;
    pub const BACKTRACE: i32 = HEADER + offset_of!(TVMFFIErrorCell, backtrace) as i32;
    pub const MESSAGE: i32 = HEADER + offset_of!(TVMFFIErrorCell, message) as i32;
    pub const UPDATE_BACKTRACE: i32 = HEADER + offset_of!(TVMFFIErrorCell, update_backtrace) as i32;
    pub const CAUSE_CHAIN: i32 = HEADER + offset_of!(TVMFFIErrorCell, cause_chain) as i32;
    /// `kTVMFFIBacktraceUpdateModeAppend` of tvm/ffi/c_api.h.
    pub const APPEND: i64 = 1;
}

/// Offsets of the fields of a `DLTensor`.
pub(super) mod tensor {
    use super::{DLDevice, DLTensor, offset_of};

    pub const DATA: i32 = offset_of!(DLTensor, data) as i32;
    pub const DEVICE: i32 = offset_of!(DLTensor, device) as i32;
    pub const NDIM: i32 = offset_of!(DLTensor, ndim) as i32;
    pub const DTYPE: i32 = offset_of!(DLTensor, dtype) as i32;
    pub const SHAPE: i32 = offset_of!(DLTensor, shape) as i32;
    pub const STRIDES: i32 = offset_of!(DLTensor, strides) as i32;
    pub const BYTE_OFFSET: i32 = offset_of!(DLTensor, byte_offset) as i32;
    // Adjacent fields that are compared with one load.
    const _: () = assert!(NDIM + 4 == DTYPE && NDIM % 8 == 0);
    const _: () =
        assert!(DEVICE % 8 == 0 && offset_of!(DLDevice, device_type) == 0 && offset_of!(DLDevice, device_id) == 4);
}

/// Alignment of a `TVMFFIAny`.
pub(super) const ANY: PointerFacts = PointerFacts { align: align_of::<TVMFFIAny>() as u32, ..PointerFacts::NONE };

/// The facts about the pointer to a wrapper's result: the ABI guarantees that it is valid.
pub(super) fn result_facts() -> PointerFacts {
    PointerFacts { nonnull: true, dereferenceable: ANY_SIZE as u32, ..ANY }
}

/// Returns 0.
pub(super) fn succeed(b: &mut FunctionBuilder<'_>) {
    let zero = b.iconst(Type::I32, 0);
    b.ret(Some(zero));
}

/// Writes a value of a known type: type index and zero padding in one store, then the whole payload.
pub(super) fn store_any(b: &mut FunctionBuilder<'_>, to: Value, index: TypeIndex, payload: Value) {
    store_index(b, to, index);
    b.store(payload, to, PAYLOAD, MemFlags::ALIGNED);
}

/// Creates a `TVMFFIByteArray` on the stack.
pub(super) fn byte_array<'c>(c: Emitter<'c>, data: Val<'c>, size: Val<'c>) -> Val<'c> {
    let array = c.slot(size_of::<TVMFFIByteArray>());
    array.store(0, data);
    array.store(8, size);
    array
}

/// Writes None.
pub(super) fn store_none(b: &mut FunctionBuilder<'_>, to: Value) {
    store_index(b, to, TypeIndex::NONE);
    let zero = b.i64(0);
    b.store(zero, to, PAYLOAD, MemFlags::ALIGNED);
}

/// Writes a type index with its padding.
pub(super) fn store_index(b: &mut FunctionBuilder<'_>, to: Value, index: TypeIndex) {
    let order = b.module().endianness;
    let index = b.i64(pair(order, index.0 as u32, 0));
    b.store(index, to, TYPE_INDEX, MemFlags::ALIGNED);
}

/// Writes a scalar as the result.
pub(super) fn store_result(b: &mut FunctionBuilder<'_>, result: Value, ty: ScalarType, value: Value) {
    let (index, payload) = scalar_parts(b, ty, value);
    store_any(b, result, index, payload);
}

/// The type index of a scalar's values.
pub(super) fn scalar_index(ty: ScalarType) -> TypeIndex {
    match ty.kind() {
        ScalarKind::Signed | ScalarKind::Unsigned => TypeIndex::INT,
        ScalarKind::Half(_) | ScalarKind::Float32 | ScalarKind::Float64 => TypeIndex::FLOAT,
        ScalarKind::Bool => TypeIndex::BOOL,
        ScalarKind::Handle => TypeIndex::OPAQUE_PTR,
    }
}

/// The type index and the payload of a scalar.
pub(super) fn scalar_parts(b: &mut FunctionBuilder<'_>, ty: ScalarType, value: Value) -> (TypeIndex, Value) {
    let payload = match ty.kind() {
        ScalarKind::Signed | ScalarKind::Unsigned if ty.bits() == 64 => value,
        ScalarKind::Signed => b.convert(ConvertOp::SExt, Type::I64, value),
        ScalarKind::Unsigned | ScalarKind::Bool => b.convert(ConvertOp::ZExt, Type::I64, value),
        ScalarKind::Half(half) => half::widen(b, half, value),
        ScalarKind::Float32 => b.convert(ConvertOp::FPromote, Type::F64, value),
        ScalarKind::Float64 | ScalarKind::Handle => value,
    };
    (scalar_index(ty), payload)
}
