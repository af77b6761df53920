//! Objects whose layout the fields of their type describe, and nothing else: those of types that other languages define, and of some
//! built-in ones. All bits zero are a valid value of every field.
//! No header section: upstream's `PyClassDeleter` and what makes such objects.

use super::field;
use crate::abi::*;
use crate::any::Any;
use crate::error::{Result, value_error};
use crate::heap::{ObjectLayout, ObjectRef, make_object, release};
use crate::type_info::key_of;
use crate::type_table::fields;

#[repr(C)]
struct Instance {
    /// The fields lie behind it.
    header: TVMFFIObject,
}

// SAFETY: repr(C) with the header first.
unsafe impl ObjectLayout for Instance {
    // The header of a new object gets the index of its own type.
    const TYPE_INDEX: TypeIndex = TypeIndex::OBJECT;

    unsafe fn drop_fields(object: *mut Self) {
        // SAFETY: the object is made by `create`, with memory for the fields of its type, each of which is valid and given up here, once.
        unsafe {
            let index = TypeIndex((*object).header.type_index);
            release(fields(index).unwrap_or_default().into_iter().filter_map(|info| {
                let place = object.wrapping_byte_offset(info.offset as isize);
                match Storage::of(info) {
                    Storage::Plain => None,
                    // Two fields may share a place, in which the first one leaves nothing.
                    Storage::Any => place.cast::<Any>().replace(Any::none()).into_object(),
                    Storage::Object => place.cast::<Option<ObjectRef>>().replace(None),
                }
            }));
        }
    }
}

/// What lies in the place of a field.
enum Storage {
    /// Bits that own nothing.
    Plain,
    Any,
    /// A pointer to an object, or NULL.
    Object,
}

impl Storage {
    fn of(field: &TVMFFIFieldInfo) -> Self {
        match TypeIndex(field.field_static_type_index) {
            TypeIndex::ANY if field.size == size_of::<*mut TVMFFIObject>() as i64 => Self::Object,
            TypeIndex::ANY => Self::Any,
            index if index.is_object() => Self::Object,
            _ => Self::Plain,
        }
    }
}

/// The size of an object that has memory for the header and all fields.
fn checked_size(index: TypeIndex, total_size: i32) -> Result<usize> {
    let outside = |field: &TVMFFIFieldInfo| {
        field.offset < size_of::<TVMFFIObject>() as i64
            || field.size < 0
            || field.offset + field.size > total_size.into()
    };
    match fields(index)?.into_iter().find(|field| outside(field)) {
        Some(info) => {
            let name = String::from_utf8_lossy(field::name(info));
            let key = key_of(index);
            Err(value_error(&format!(
                "the field `{name}` of type `{key}` is outside of an object of {total_size} bytes"
            )))
        }
        None => Ok(usize::try_from(total_size).unwrap_or(0).max(size_of::<TVMFFIObject>())),
    }
}

/// A new object of a type, with all fields zero.
///
/// # Errors
/// `InternalError` for an unknown type, `ValueError` where the fields are not within `total_size`.
pub(super) fn create(index: TypeIndex, total_size: i32) -> Result<ObjectRef> {
    let tail = checked_size(index, total_size)? - size_of::<TVMFFIObject>();
    let object = make_object::<Instance>(tail, |header, fields| {
        // SAFETY: the tail is new and has that many bytes.
        unsafe { fields.write_bytes(0, tail) };
        Instance { header: TVMFFIObject { type_index: index.0, ..header } }
    });
    // SAFETY: `make_object` hands out the object's one strong reference.
    Ok(unsafe { ObjectRef::from_non_null(object) })
}

/// A new object with the fields of another one.
///
/// # Errors
/// As [`create`].
///
/// # Safety
/// `source` must be of the type, in a layout with these fields.
pub(super) unsafe fn shallow_copy(index: TypeIndex, total_size: i32, source: &ObjectRef) -> Result<ObjectRef> {
    let copy = create(index, total_size)?;
    for info in fields(index)? {
        // SAFETY: both objects have the field, and nobody else has the copy.
        unsafe {
            let at = |object: &ObjectRef| object.as_ptr().wrapping_byte_offset(info.offset as isize);
            let (from, to) = (at(source), at(&copy));
            match Storage::of(info) {
                Storage::Plain => to.cast::<u8>().copy_from_nonoverlapping(from.cast::<u8>(), info.size as usize),
                // Two fields may share a place: the value there before is given up.
                Storage::Any => *to.cast::<Any>() = (*from.cast::<Any>()).clone(),
                Storage::Object => *to.cast::<Option<ObjectRef>>() = (*from.cast::<Option<ObjectRef>>()).clone(),
            }
        }
    }
    Ok(copy)
}
