//! Definition regions. A variable inside a region is defined there, so that two variables may stand for each other.
//! Outside of regions a variable equals only itself, or the one that it was bound to.
//! Header section: `TVMFFIDefRegionKind`.

#![allow(non_upper_case_globals)]

use crate::abi::*;
use crate::error::{Result, value_error};
use crate::reflect::field;

/// The region that a walk is in.
#[derive(Copy, Clone, Default, PartialEq, Eq)]
pub(super) enum Region {
    #[default]
    None,
    /// Defines each variable that is reached, the variables inside a variable's own fields included.
    Pattern,
    /// Defines a variable, but none inside its fields.
    Simple,
}

impl Region {
    /// The region of a walk whose caller says whether to map free variables.
    pub(super) fn of_root(map_free_vars: bool) -> Self {
        if map_free_vars { Self::Pattern } else { Self::None }
    }

    /// The region that a field enters by its flags, if any.
    pub(super) fn of_field(info: &TVMFFIFieldInfo) -> Option<Self> {
        if field::has(info, kTVMFFIFieldFlagBitMaskSEqHashDefSimple) {
            return Some(Self::Simple);
        }
        field::has(info, kTVMFFIFieldFlagBitMaskSEqHashDefPattern).then_some(Self::Pattern)
    }

    /// The region that a hook asks for by upstream's number, if any.
    ///
    /// # Errors
    /// `ValueError` for another number.
    pub(super) fn of_number(number: i64) -> Result<Option<Self>> {
        match i32::try_from(number) {
            Ok(kTVMFFIDefRegionKindNone) => Ok(None),
            Ok(kTVMFFIDefRegionKindPattern) => Ok(Some(Self::Pattern)),
            Ok(kTVMFFIDefRegionKindSimple) => Ok(Some(Self::Simple)),
            _ => Err(value_error(&format!("no such kind of definition region: {number}"))),
        }
    }

    /// The region inside this one where a value enters `entered`. A pattern extends to all inside it.
    pub(super) fn inside(self, entered: Option<Self>) -> Self {
        if self == Self::Pattern { self } else { entered.unwrap_or(self) }
    }

    /// The region of the fields of a variable in this region.
    pub(super) fn of_variable_fields(self) -> Self {
        if self == Self::Simple { Self::None } else { self }
    }
}
