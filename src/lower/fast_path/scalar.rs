//! The fast path of a scalar. It accepts only the exact type that carries the scalar. The binder converts others: an
//! int for a float.

use super::checks::Checks;
use super::context::AnyRef;
use super::range::Range;
use super::state::Ranged;
use crate::ir::{ConvertOp, IntCC, Type, Value};
use crate::lower::abi::scalar_index;
use crate::lower::convention::c_type::abi_param;
use crate::lower::half;
use crate::spec::{ScalarKind, ScalarType};

/// A scalar's value for the kernel, and the 64 bits of an integer.
pub(super) struct Scalar {
    pub value: Value,
    pub wide: Option<Ranged>,
}

/// Checks an argument and returns its value, in the scalar's C type.
pub(super) fn lower(c: &mut Checks<'_, '_>, arg: AnyRef, ty: ScalarType) -> Scalar {
    let type_index = arg.type_index(c);
    let expected = c.b.iconst(Type::I32, i64::from(scalar_index(ty).0));
    c.require_equal(type_index, expected);
    let value = match ty.kind() {
        ScalarKind::Bool => {
            let payload = arg.payload(c, Type::I64);
            let value = c.b.icmp_imm(IntCC::Ne, payload, 0);
            c.b.convert(ConvertOp::ZExt, Type::I8, value)
        }
        ScalarKind::Float64 => arg.payload(c, Type::F64),
        ScalarKind::Float32 => {
            let value = arg.payload(c, Type::F64);
            c.b.convert(ConvertOp::FDemote, Type::F32, value)
        }
        ScalarKind::Half(half) => {
            let value = arg.payload(c, Type::F64);
            half::narrow(c.b, half, value)
        }
        ScalarKind::Handle => arg.payload(c, Type::Ptr),
        ScalarKind::Signed | ScalarKind::Unsigned => return int(c, arg, ty),
    };
    Scalar { value, wide: None }
}

/// An integer. A narrow one must be unchanged after truncation to its width and extension.
fn int(c: &mut Checks<'_, '_>, arg: AnyRef, ty: ScalarType) -> Scalar {
    let payload = arg.payload(c, Type::I64);
    let wide = Some(Ranged { value: payload, range: Range::of_type(ty) });
    if ty.bits() == 64 {
        return Scalar { value: payload, wide };
    }
    let narrow = c.b.convert(ConvertOp::Truncate, abi_param(ty).ty, payload);
    let extend = if ty.is_signed_int() { ConvertOp::SExt } else { ConvertOp::ZExt };
    let back = c.b.convert(extend, Type::I64, narrow);
    c.require_equal(back, payload);
    Scalar { value: narrow, wide }
}
