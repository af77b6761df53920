//! The values inside a value that a visit reaches, one at a time: elements, values of maps and dicts, or fields.

use super::super::facts::structural_fields;
use super::super::region;
use crate::abi::*;
use crate::any::Any;
use crate::container::Inner;
use crate::error::Result;
use crate::heap::ObjectRef;
use crate::reflect::field;

/// A value inside another one.
pub(super) struct Child {
    pub(super) value: Any,
    /// The definition region that its field begins.
    pub(super) region: Option<i32>,
}

/// The values inside a value that are still to come.
pub(super) enum Children {
    Container { inner: Inner, place: Option<u64> },
    Fields { object: ObjectRef, fields: std::vec::IntoIter<&'static TVMFFIFieldInfo> },
}

impl Children {
    /// The elements of a container; `None` for any other object.
    pub(super) fn of_container(object: &ObjectRef) -> Option<Self> {
        Inner::of(object).map(|inner| Self::Container { inner, place: None })
    }

    /// The fields of an object.
    ///
    /// # Errors
    /// `InternalError` for an unknown type.
    pub(super) fn of_fields(object: ObjectRef) -> Result<Self> {
        Ok(Self::Fields { fields: structural_fields(object.type_index())?.into_iter(), object })
    }

    /// The next value.
    ///
    /// # Errors
    /// The error of a getter.
    pub(super) fn next(&mut self) -> Result<Option<Child>> {
        match self {
            Self::Container { inner, place } => {
                let Some((next, value)) = inner.next(*place) else { return Ok(None) };
                *place = Some(next);
                Ok(Some(Child { value, region: None }))
            }
            Self::Fields { object, fields } => {
                let Some(info) = fields.next() else { return Ok(None) };
                // SAFETY: the field is one of the object's type.
                let value = unsafe { field::get(info, object)? };
                Ok(Some(Child { value, region: region::of_field(info) }))
            }
        }
    }
}
