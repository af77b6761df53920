//! The good path of a scalar argument: of exactly the type that carries it. Conversions are a doubt for
//! [`super::support::bind`], which makes a float of an int.

use super::kernel::abi_param;
use super::wrapper::Lowerer;
use crate::ir::{ConvertOp, IntCC, Type, Value};
use crate::spec::ScalarType;
use tvm_ffi_runtime::abi::TypeIndex;

/// Checks argument `i` and gives its value: a `Bool` for `bool`, else of the scalar's C type.
pub(super) fn decode(l: &mut Lowerer<'_>, i: usize, ty: ScalarType) -> Value {
    let type_index = l.type_index(i);
    let expected = match ty {
        ScalarType::Float32 | ScalarType::Float64 => TypeIndex::FLOAT,
        ScalarType::Handle => TypeIndex::OPAQUE_PTR,
        ScalarType::Bool => TypeIndex::BOOL,
        _ => TypeIndex::INT,
    };
    let expected = l.b.iconst(Type::I32, i64::from(expected.0));
    l.conditions.equal(type_index, expected);
    match ty {
        ScalarType::Bool => {
            let payload = l.payload(i, Type::I64);
            l.b.icmp_imm(IntCC::Ne, payload, 0)
        }
        ScalarType::Float64 => l.payload(i, Type::F64),
        ScalarType::Float32 => {
            let value = l.payload(i, Type::F64);
            l.b.convert(ConvertOp::FDemote, Type::F32, value)
        }
        ScalarType::Handle => l.payload(i, Type::Ptr),
        _ => int(l, i, ty),
    }
}

/// An integer; a narrow one has to come back whole from its own width.
fn int(l: &mut Lowerer<'_>, i: usize, ty: ScalarType) -> Value {
    let payload = l.payload(i, Type::I64);
    if ty.bits() == 64 {
        return payload;
    }
    let narrow = l.b.convert(ConvertOp::Truncate, abi_param(ty).ty, payload);
    let extend = if ty.is_signed_int() { ConvertOp::SExt } else { ConvertOp::ZExt };
    let back = l.b.convert(extend, Type::I64, narrow);
    l.conditions.equal(back, payload);
    narrow
}
