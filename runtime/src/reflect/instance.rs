//! Objects with a layout that is described only by the fields of their type. They belong to types that other languages
//! define, and to some built-in types. A new object is all bits zero, which is a valid value for each field. `Stored`
//! requires that of Rust's types, and [`Storage`] has no other kinds. Types with `derive(Object)` lay out their objects
//! themselves, so this file refuses to make objects of them or their children.
//! No header section: upstream's `PyClassDeleter`, and the code that makes such objects.

use super::field;
use crate::abi::*;
use crate::any::Any;
use crate::error::{Result, value_error};
use crate::heap::{ObjectLayout, ObjectRef, make_object, release};
use crate::type_info::key_of;
use crate::type_table::{fields, layout_owner};

#[repr(C)]
struct Instance {
    /// The fields follow it in memory.
    header: TVMFFIObject,
}

// SAFETY: repr(C) with the header first.
unsafe impl ObjectLayout for Instance {
    // The header of a new object gets the index of its own type.
    const TYPE_INDEX: TypeIndex = TypeIndex::OBJECT;

    unsafe fn drop_fields(object: *mut Self) {
        // SAFETY: `create` made the object, with memory for the fields of its type. Each field is valid, and released
        // here once.
        unsafe {
            let index = TypeIndex((*object).header.type_index);
            release(fields(index).unwrap_or_default().into_iter().filter_map(|info| {
                let place = object.wrapping_byte_offset(info.offset as isize);
                match Storage::of(info) {
                    Storage::Plain => None,
                    // Two fields may share an offset, so leave None or NULL there after releasing the first one.
                    Storage::Any => place.cast::<Any>().replace(Any::none()).into_object(),
                    Storage::Object => place.cast::<Option<ObjectRef>>().replace(None),
                }
            }));
        }
    }
}

/// The kind of value that a field stores.
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
            // The setter of a field of type None stores any value.
            TypeIndex::ANY | TypeIndex::NONE => Self::Any,
            index if index.is_object() => Self::Object,
            _ => Self::Plain,
        }
    }
}

/// Checks that the header and all fields fit into `total_size`, and returns the object's size in bytes.
fn checked_size(index: TypeIndex, total_size: i32) -> Result<usize> {
    if let Some(owner) = layout_owner(index) {
        return Err(value_error(&format!(
            "objects of type `{}` can't be made from fields: Rust code lays out objects of `{}`",
            key_of(index),
            key_of(owner)
        )));
    }
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
/// `InternalError` for an unknown type; `ValueError` if a field lies outside of `total_size`, or Rust code lays out the
/// type's objects.
pub(super) fn create(index: TypeIndex, total_size: i32) -> Result<ObjectRef> {
    let tail = checked_size(index, total_size)? - size_of::<TVMFFIObject>();
    let object = make_object::<Instance>(tail, |header, fields| {
        // SAFETY: the tail is new and has that many bytes.
        unsafe { fields.write_bytes(0, tail) };
        Instance { header: TVMFFIObject { type_index: index.0, ..header } }
    });
    // SAFETY: `make_object` returns the object's only strong reference.
    Ok(unsafe { ObjectRef::from_non_null(object) })
}

/// A new object with the field values of another one.
///
/// # Errors
/// As [`create`].
///
/// # Safety
/// `source` must be an object of the type, and its layout must have the type's fields.
pub(super) unsafe fn shallow_copy(index: TypeIndex, total_size: i32, source: &ObjectRef) -> Result<ObjectRef> {
    let copy = create(index, total_size)?;
    for info in fields(index)? {
        // SAFETY: both objects have the field, and no other code has the copy.
        unsafe {
            let at = |object: &ObjectRef| object.as_ptr().wrapping_byte_offset(info.offset as isize);
            let (from, to) = (at(source), at(&copy));
            match Storage::of(info) {
                Storage::Plain => to.cast::<u8>().copy_from_nonoverlapping(from.cast::<u8>(), info.size as usize),
                // Assign rather than write, since two fields may share an offset: this drops the first field's value.
                Storage::Any => *to.cast::<Any>() = (*from.cast::<Any>()).clone(),
                Storage::Object => *to.cast::<Option<ObjectRef>>() = (*from.cast::<Option<ObjectRef>>()).clone(),
            }
        }
    }
    Ok(copy)
}
