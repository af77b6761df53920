//! The good path of a scalar: of exactly the type that carries it. Conversions are a doubt for `bind`, which makes a float of an int.

use super::super::kernel::abi_param;
use super::super::wrapper::Lowerer;
use super::Place;
use crate::ir::{ConvertOp, IntCC, Type, Value};
use crate::spec::ScalarType;
use tvm_ffi_runtime::abi::TypeIndex;

/// A scalar's value as a kernel gets it. Of an integer also its 64 bits.
pub(super) struct Scalar {
    pub value: Value,
    pub wide: Option<Value>,
}

/// Checks an argument and gives its value: of the scalar's C type.
pub(super) fn decode(l: &mut Lowerer<'_>, place: Place, ty: ScalarType) -> Scalar {
    let type_index = place.type_index(l);
    let expected = match ty {
        ScalarType::Float32 | ScalarType::Float64 => TypeIndex::FLOAT,
        ScalarType::Handle => TypeIndex::OPAQUE_PTR,
        ScalarType::Bool => TypeIndex::BOOL,
        _ => TypeIndex::INT,
    };
    let expected = l.b.iconst(Type::I32, i64::from(expected.0));
    l.require_equal(type_index, expected);
    let value = match ty {
        ScalarType::Bool => {
            let payload = place.payload(l, Type::I64);
            let value = l.b.icmp_imm(IntCC::Ne, payload, 0);
            l.b.convert(ConvertOp::ZExt, Type::I8, value)
        }
        ScalarType::Float64 => place.payload(l, Type::F64),
        ScalarType::Float32 => {
            let value = place.payload(l, Type::F64);
            l.b.convert(ConvertOp::FDemote, Type::F32, value)
        }
        ScalarType::Handle => place.payload(l, Type::Ptr),
        _ => return int(l, place, ty),
    };
    Scalar { value, wide: None }
}

/// An integer; a narrow one has to come back whole from its own width.
fn int(l: &mut Lowerer<'_>, place: Place, ty: ScalarType) -> Scalar {
    let payload = place.payload(l, Type::I64);
    if ty.bits() == 64 {
        return Scalar { value: payload, wide: Some(payload) };
    }
    let narrow = l.b.convert(ConvertOp::Truncate, abi_param(ty).ty, payload);
    let extend = if ty.is_signed_int() { ConvertOp::SExt } else { ConvertOp::ZExt };
    let back = l.b.convert(extend, Type::I64, narrow);
    l.require_equal(back, payload);
    Scalar { value: narrow, wide: Some(payload) }
}
