//! Decoding a scalar argument: contract 6, by upstream's converters (`tvm/ffi/type_traits.h`).

use super::kernel::abi_param;
use super::messages::{Part, Tag};
use super::wrapper::{Failure, Lowerer, VALUE_ERROR};
use crate::ir::{ConvertOp, IntCC, Type, Value};
use crate::spec::ScalarType;
use tvm_ffi_runtime::abi::TypeIndex;

/// Checks argument `i` and gives its value: a `Bool` for `bool`, else of the scalar's C type.
pub(super) fn decode(l: &mut Lowerer<'_>, i: usize, name: &str, ty: ScalarType) -> Value {
    let type_index = l.type_index(i);
    let accepted: &[TypeIndex] = match ty {
        ScalarType::Float32 | ScalarType::Float64 => &[TypeIndex::FLOAT, TypeIndex::INT, TypeIndex::BOOL],
        ScalarType::Handle => &[TypeIndex::OPAQUE_PTR, TypeIndex::NONE],
        ScalarType::Bool => &[TypeIndex::BOOL, TypeIndex::INT],
        _ => &[TypeIndex::INT, TypeIndex::BOOL],
    };
    let ok = l.is_one_of(type_index, accepted);
    l.check_type(ok, i, name, ty.name(), type_index);
    match ty {
        ScalarType::Bool => {
            let payload = l.payload(i, Type::I64);
            l.b.icmp_imm(IntCC::Ne, payload, 0)
        }
        ScalarType::Float32 | ScalarType::Float64 => float(l, i, type_index, ty),
        ScalarType::Handle => handle(l, i, type_index),
        _ => int(l, i, name, ty),
    }
}

fn float(l: &mut Lowerer<'_>, i: usize, type_index: Value, ty: ScalarType) -> Value {
    let float = l.payload(i, Type::F64);
    let int = l.payload(i, Type::I64);
    let converted = l.b.convert(ConvertOp::SIntToFloat, Type::F64, int);
    let is_float = l.b.icmp_imm(IntCC::Eq, type_index, i64::from(TypeIndex::FLOAT.0));
    let value = l.b.select(is_float, float, converted);
    match ty {
        ScalarType::Float32 => l.b.convert(ConvertOp::FDemote, Type::F32, value),
        _ => value,
    }
}

/// None is NULL, whatever its payload.
fn handle(l: &mut Lowerer<'_>, i: usize, type_index: Value) -> Value {
    let pointer = l.payload(i, Type::Ptr);
    let null = l.b.ptr_const(0);
    let given = l.b.icmp_imm(IntCC::Eq, type_index, i64::from(TypeIndex::OPAQUE_PTR.0));
    l.b.select(given, pointer, null)
}

fn int(l: &mut Lowerer<'_>, i: usize, name: &str, ty: ScalarType) -> Value {
    let payload = l.payload(i, Type::I64);
    if ty.bits() == 64 {
        return payload;
    }
    let narrow = l.b.convert(ConvertOp::Truncate, abi_param(ty).ty, payload);
    let extend = if ty.is_signed_int() { ConvertOp::SExt } else { ConvertOp::ZExt };
    let back = l.b.convert(extend, Type::I64, narrow);
    let fits = l.b.icmp(IntCC::Eq, back, payload);
    l.check(fits, |l| {
        let bits = ty.bits();
        let (least, greatest) = match ty.is_signed_int() {
            true => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
            false => (0, (1i64 << bits) - 1),
        };
        let expected = [Part::from(format!("{ty} ({least} to {greatest}), got ")), Tag::First.into()];
        let row = l.mismatch(VALUE_ERROR, &format!("value of {name}"), i, &expected);
        Failure::got(row, payload)
    });
    narrow
}
