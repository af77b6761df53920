//! Helpers to define a built-in type with objects that are laid out by their fields: creation, copies, fields.

use std::ffi::c_int;

use super::accessors::{Stored, getter, setter};
use super::{field, instance};
use crate::abi::*;
use crate::any::{Any, AnyView};
use crate::boundary::{guard, required_out};
use crate::error::{Result, runtime_error, type_mismatch};
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::type_table::{Definition, FieldDef, fields, is_instance, key_to_index};

pub(crate) const ANY: &str = r#"{"type_schema":"{\"type\":\"Any\"}"}"#;
pub(crate) const INT: &str = r#"{"type_schema":"{\"type\":\"int\"}"}"#;

/// A built-in type with objects that are laid out by their fields.
pub(crate) trait Builtin {
    const KEY: &'static str;
    const SIZE: usize;

    /// The fields of a new object that aren't all zero bits, with their values.
    fn initial() -> Vec<(&'static str, Any)> {
        Vec::new()
    }
}

/// Makes an object of a built-in type, with `values` in the named fields.
pub(crate) fn create<T: Builtin>(values: Vec<(&'static str, Any)>) -> Result<ObjectRef> {
    let index = TypeIndex(key_to_index(T::KEY).ok_or_else(|| runtime_error(&format!("no type `{}`", T::KEY)))?);
    let object = instance::create(index, T::SIZE as i32)?;
    let known = fields(index)?;
    for (name, value) in values {
        for info in known.iter().filter(|info| field::name(info) == name.as_bytes()) {
            // SAFETY: the field is one of the object's type, and no other code has the object.
            unsafe { field::set(info, &object, value.as_view())? };
        }
    }
    Ok(object)
}

/// The object of a built-in type in a value.
///
/// # Errors
/// `TypeError` for any other value.
pub(crate) fn object_of<T: Builtin>(value: &AnyView<'_>) -> Result<ObjectRef> {
    let is_one = |object: &ObjectRef| {
        key_to_index(T::KEY).is_some_and(|index| is_instance(object.type_index(), TypeIndex(index)))
    };
    value.object(is_one).ok_or_else(|| type_mismatch(T::KEY, value.type_index()))
}

unsafe extern "C" fn creator<T: Builtin>(result: *mut TVMFFIObjectHandle) -> c_int {
    guard(|| {
        let result = required_out(result, "result")?;
        let object = create::<T>(T::initial())?;
        // SAFETY: the result is not NULL, and writable by contract.
        unsafe { result.write(object.into_raw().cast()) };
        Ok(())
    })
}

/// The definition of a type, with a creator and the attributes that make and copy its objects.
pub(crate) fn define<T: Builtin>(parent: &'static str, is_final: bool) -> Definition {
    let new = Function::built_in(|_| create::<T>(T::initial()).map(Any::from));
    let copy = Function::built_in(|args| {
        let [source] = args else { return Err(runtime_error("a shallow copy takes one argument")) };
        let (source, index) = (source.cast::<ObjectRef>()?, key_to_index(T::KEY).map(TypeIndex));
        match index {
            // SAFETY: an object of the type or a derived one has these fields.
            Some(index) if is_instance(source.type_index(), index) => unsafe {
                instance::shallow_copy(index, T::SIZE as i32, &source).map(Any::from)
            },
            _ => Err(runtime_error(&format!("a shallow copy of `{}` as `{}`", source.type_key(), T::KEY))),
        }
    });
    Definition::object(T::KEY, parent, T::SIZE, is_final)
        .creator(creator::<T>)
        .attribute("__ffi_new__", new)
        .attribute("__ffi_shallow_copy__", copy)
}

/// A field that stores an `S`.
pub(crate) fn stored<S: Stored>(
    name: &'static str,
    doc: &'static str,
    schema: &'static str,
    offset: usize,
    static_index: TypeIndex,
) -> FieldDef {
    let (getter, setter) = (getter::<S>, Some(setter::<S> as TVMFFIFieldSetter));
    FieldDef { name, doc, schema, flags: 0, size: size_of::<S>(), offset, getter, setter, static_index }
}
