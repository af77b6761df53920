//! The IR types of scalars.

use crate::ir::Type;
use crate::lower::convention::c_type::abi_param;
use crate::spec::ScalarType;

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
