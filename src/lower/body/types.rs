//! The types of scalars inside a body.

use crate::ir::Type;
use crate::lower::convention::c_type::abi_param;
use crate::spec::{ScalarKind, ScalarType};

/// The type in a body of values of a type: `float32` has all values of both half types.
pub(super) fn value_type(ty: ScalarType) -> ScalarType {
    match ty.kind() {
        ScalarKind::Half(_) => ScalarType::Float32,
        ScalarKind::Signed
        | ScalarKind::Unsigned
        | ScalarKind::Float32
        | ScalarKind::Float64
        | ScalarKind::Bool
        | ScalarKind::Handle => ty,
    }
}

/// The IR type of a scalar inside a body.
pub(super) fn ir_type(ty: ScalarType) -> Type {
    match ty {
        ScalarType::Bool => Type::Bool,
        _ => memory_type(ty),
    }
}

/// The IR type of a scalar in memory.
pub(super) fn memory_type(ty: ScalarType) -> Type {
    abi_param(ty).ty
}
