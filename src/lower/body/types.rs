//! The IR types of scalars.

use crate::ir::Type;
use crate::lower::convention::c_type::abi_param;
use crate::spec::ScalarType;

/// The type of a value of a scalar type inside a body.
pub(super) fn ir_type(ty: ScalarType) -> Type {
    match ty {
        ScalarType::Bool => Type::Bool,
        _ => memory_type(ty),
    }
}

/// The type of a scalar in memory.
pub(super) fn memory_type(ty: ScalarType) -> Type {
    abi_param(ty).ty
}
