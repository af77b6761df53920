//! Definition regions: whether a variable that is reached is defined there, or used.
//! Header section: `TVMFFIDefRegionKind`.
#![allow(non_upper_case_globals)]

use crate::abi::*;
use crate::error::{Result, value_error};
use crate::reflect::field;
use crate::type_table::metadata;

/// The region of a walk whose caller says whether variables that are defined nowhere may stand for each other.
pub(super) fn of_root(map_free_vars: bool) -> i32 {
    if map_free_vars { kTVMFFIDefRegionKindPattern } else { kTVMFFIDefRegionKindNone }
}

/// The region inside `current` for a hook that asks for `kind`, or for no change by `kTVMFFIDefRegionKindNone`.
///
/// # Errors
/// `ValueError` for another number.
pub(super) fn asked(current: i32, kind: i64) -> Result<i32> {
    match i32::try_from(kind) {
        Ok(kTVMFFIDefRegionKindNone) => Ok(current),
        Ok(kind @ (kTVMFFIDefRegionKindPattern | kTVMFFIDefRegionKindSimple)) => Ok(enter(current, kind)),
        _ => Err(value_error(&format!("no such kind of definition region: {kind}"))),
    }
}

/// The region after entering one of `kind`: a pattern region holds for everything inside it.
pub(super) fn enter(current: i32, kind: i32) -> i32 {
    if current == kTVMFFIDefRegionKindPattern { current } else { kind }
}

/// The kind of region that a field begins, if it begins one.
pub(super) fn of_field(info: &TVMFFIFieldInfo) -> Option<i32> {
    if field::has(info, kTVMFFIFieldFlagBitMaskSEqHashDefSimple) {
        return Some(kTVMFFIDefRegionKindSimple);
    }
    field::has(info, kTVMFFIFieldFlagBitMaskSEqHashDefPattern).then_some(kTVMFFIDefRegionKindPattern)
}

/// The kind of structural equality of a type; `kTVMFFISEqHashKindUnsupported` for one without metadata.
///
/// # Errors
/// `InternalError` for an unknown type.
pub(super) fn equality_kind(index: TypeIndex) -> Result<i32> {
    Ok(metadata(index)?.map_or(kTVMFFISEqHashKindUnsupported, |metadata| metadata.structural_eq_hash_kind))
}

/// The region inside an object of a type with this kind of equality: a simple definition defines a free variable, but
/// not the variables in its fields.
pub(super) fn inside(current: i32, equality_kind: i32) -> i32 {
    let is_variable = current == kTVMFFIDefRegionKindSimple && equality_kind == kTVMFFISEqHashKindFreeVar;
    if is_variable { kTVMFFIDefRegionKindNone } else { current }
}
