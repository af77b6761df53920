//! A value whose inner values are being mapped: it changes in place, or in a copy that the first change makes.
//! Rules: upstream's `MutateReflectedFieldsExpected`, and the hooks in structural_mutate.cc.

use std::sync::LazyLock;

use super::super::facts::structural_fields;
use super::super::region;
use super::children::Child;
use super::mutator::references;
use super::outcome::{checked, is_unchanged, unchanged};
use crate::abi::*;
use crate::any::Any;
use crate::container::Inner;
use crate::error::{Error, Result, type_error};
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::reflect::field;
use crate::type_info::key_of;
use crate::type_table::AttrColumn;

static SHALLOW_COPY: LazyLock<AttrColumn> = LazyLock::new(|| AttrColumn::named(b"__ffi_shallow_copy__"));

/// A value that is being mapped.
pub(super) enum Rebuild {
    Container {
        source: Inner,
        /// The copy, after the first change.
        copy: Option<Inner>,
        place: Option<u64>,
        in_place: bool,
    },
    Fields {
        copy: ObjectRef,
        fields: Vec<&'static TVMFFIFieldInfo>,
        next: usize,
        is_changed: bool,
    },
}

/// The references to a child of an exclusive container while it is being mapped: the container's, and the map's.
const OWN_REFERENCES: u32 = 2;

impl Rebuild {
    /// The elements of a container; `None` for any other object.
    ///
    /// # Safety
    /// With `in_place`, no other code may be able to reach the container until its last change.
    pub(super) unsafe fn of_container(object: &ObjectRef, in_place: bool) -> Option<Self> {
        Inner::of(object).map(|source| Self::Container { source, copy: None, place: None, in_place })
    }

    /// The fields of an object, in a shallow copy.
    ///
    /// # Errors
    /// `TypeError` if the type makes no copies, or the copy isn't one; any error of the function that copies.
    pub(super) fn of_fields(value: &Any, object: &ObjectRef) -> Result<Self> {
        let index = object.type_index();
        let copy = SHALLOW_COPY.value(index).map(|copy| copy.cast::<Function>());
        let Some(Ok(copy)) = copy else {
            return Err(type_error("__ffi_shallow_copy__ must be an ffi.Function"));
        };
        let copy = checked(copy.call((value,))?)?.into_object();
        let copy = copy.filter(|copy| copy.type_index() == index && !copy.ptr_eq(object)).ok_or_else(no_copy)?;
        Ok(Self::Fields { copy, fields: structural_fields(index)?, next: 0, is_changed: false })
    }

    /// The next value inside.
    ///
    /// # Errors
    /// The error of a getter.
    pub(super) fn next(&mut self) -> Result<Option<Child>> {
        match self {
            Self::Container { source, copy, place, .. } => {
                let Some((next, value)) = copy.as_ref().unwrap_or(source).next(*place) else { return Ok(None) };
                *place = Some(next);
                Ok(Some(Child { value, region: None }))
            }
            Self::Fields { copy, fields, next, .. } => {
                let Some(info) = fields.get(*next) else { return Ok(None) };
                *next += 1;
                // SAFETY: the field is one of the copy's type.
                let value = unsafe { field::get(info, copy)? };
                Ok(Some(Child { value, region: region::of_field(info) }))
            }
        }
    }

    /// True if the last child, of which the caller has one reference, may change in place.
    pub(super) fn owns(&self, child: &Any) -> bool {
        matches!(self, Self::Container { in_place: true, .. }) && references(child) == Some(OWN_REFERENCES)
    }

    /// Takes the result for the last child, whose bits are `old`.
    ///
    /// # Errors
    /// `TypeError` for a field without a setter; the error of a setter.
    pub(super) fn feed(&mut self, old: &TVMFFIAny, result: Any) -> Result<()> {
        let new = result.as_raw();
        let same = (new.type_index, new.zero_padding, new.bits()) == (old.type_index, old.zero_padding, old.bits());
        if same || is_unchanged(&result) {
            return Ok(());
        }
        match self {
            Self::Container { source, copy, place, in_place } => {
                let target = if *in_place { source } else { copy.get_or_insert_with(|| source.copy()) };
                if let Some(place) = *place {
                    // SAFETY: the copy is new, and no other code has it. `of_container`'s caller answers for a change
                    // in place.
                    unsafe { target.set(place, result) };
                }
            }
            Self::Fields { copy, fields, next, is_changed } => {
                let info = fields[*next - 1];
                if info.setter.is_null() {
                    return Err(no_setter(info, copy.type_index()));
                }
                // SAFETY: the field is one of the copy's type. The copy is new.
                unsafe { field::set(info, copy, result.as_view())? };
                *is_changed = true;
            }
        }
        Ok(())
    }

    /// The result for the value itself.
    pub(super) fn finish(self) -> Any {
        match self {
            Self::Container { copy: Some(copy), .. } => copy.into_container().into(),
            Self::Fields { copy, is_changed: true, .. } => copy.into(),
            _ => unchanged(),
        }
    }
}

#[cold]
fn no_copy() -> Error {
    type_error("Shallow copy callback must return a distinct object with the same type as its input")
}

#[cold]
fn no_setter(info: &TVMFFIFieldInfo, index: TypeIndex) -> Error {
    type_error(&format!(
        "Cannot structurally mutate field `{}` of type `{}` because it does not define a setter",
        String::from_utf8_lossy(field::name(info)),
        key_of(index)
    ))
}
