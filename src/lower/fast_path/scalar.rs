//! The fast path of a scalar. It accepts only the exact type that carries the scalar. The binder converts others: an
//! int for a float.

use super::checks::Checks;
use super::context::AnyRef;
use crate::ir::{ConvertOp, IntCC, Type, Value};
use crate::lower::convention::c_type::abi_param;
use crate::lower::half;
use crate::spec::ScalarType;
use tvm_ffi_runtime::abi::TypeIndex;

/// A scalar's value for the kernel, and the 64 bits of an integer.
pub(super) struct Scalar {
    pub value: Value,
    pub wide: Option<Value>,
}

/// Checks an argument and returns its value, in the scalar's C type.
pub(super) fn lower(c: &mut Checks<'_, '_>, arg: AnyRef, ty: ScalarType) -> Scalar {
    let type_index = arg.type_index(c);
    let expected = match ty {
        _ if ty.is_float() => TypeIndex::FLOAT,
        ScalarType::Handle => TypeIndex::OPAQUE_PTR,
        ScalarType::Bool => TypeIndex::BOOL,
        _ => TypeIndex::INT,
    };
    let expected = c.b.iconst(Type::I32, i64::from(expected.0));
    c.require_equal(type_index, expected);
    let value = match ty {
        ScalarType::Bool => {
            let payload = arg.payload(c, Type::I64);
            let value = c.b.icmp_imm(IntCC::Ne, payload, 0);
            c.b.convert(ConvertOp::ZExt, Type::I8, value)
        }
        ScalarType::Float64 => arg.payload(c, Type::F64),
        ScalarType::Float32 => {
            let value = arg.payload(c, Type::F64);
            c.b.convert(ConvertOp::FDemote, Type::F32, value)
        }
        _ if ty.is_half() => {
            let value = arg.payload(c, Type::F64);
            half::narrow(c.b, ty, value)
        }
        ScalarType::Handle => arg.payload(c, Type::Ptr),
        _ => return int(c, arg, ty),
    };
    Scalar { value, wide: None }
}

/// An integer. A narrow one must be unchanged after truncation to its width and extension.
fn int(c: &mut Checks<'_, '_>, arg: AnyRef, ty: ScalarType) -> Scalar {
    let payload = arg.payload(c, Type::I64);
    if ty.bits() == 64 {
        return Scalar { value: payload, wide: Some(payload) };
    }
    let narrow = c.b.convert(ConvertOp::Truncate, abi_param(ty).ty, payload);
    let extend = if ty.is_signed_int() { ConvertOp::SExt } else { ConvertOp::ZExt };
    let back = c.b.convert(extend, Type::I64, narrow);
    c.require_equal(back, payload);
    Scalar { value: narrow, wide: Some(payload) }
}
