//! Makes objects of any type from their fields: `ffi.MakeObjectFromPackedArgs`.

use super::field;
use crate::abi::*;
use crate::any::{Any, AnyView};
use crate::error::{Result, check_failed, raised_error, runtime_error, type_error};
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::string::Str;
use crate::type_info::key_of;
use crate::type_table::{attr_value, fields, metadata, required_index};

/// Makes an object of a type, with the type's initial values in its fields. The returned reference is the only one.
///
/// # Errors
/// `InternalError` for an unknown type, or one that has neither a creator nor the attribute `__ffi_new__`; any error of
/// the creator.
pub(crate) fn empty_object(index: TypeIndex) -> Result<ObjectRef> {
    if let Some(creator) = metadata(index)?.and_then(|metadata| metadata.creator) {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the code that registered the creator promised that it makes an object of the type.
        let code = unsafe { creator(&raw mut handle) };
        if code != 0 {
            return Err(raised_error(code));
        }
        // SAFETY: a creator returns an object, and the caller owns its reference.
        return unsafe { ObjectRef::from_raw(handle.cast()) }
            .ok_or_else(|| runtime_error("the creator made no object"));
    }
    if let Some(new) = attr_value(index, b"__ffi_new__") {
        return new.cast::<Function>()?.call(())?.cast();
    }
    Err(runtime_error(&format!(
        "Type `{}` does not support reflection creation (no native creator or __ffi_new__ type attr)",
        key_of(index)
    )))
}

/// The index of a type. `value` is the index itself or the type's key.
fn type_of(value: &AnyView<'_>) -> Result<TypeIndex> {
    if let Ok(index) = value.cast::<i32>() {
        return Ok(TypeIndex(index));
    }
    let Some(key) = value.str_bytes() else {
        return Err(type_error(&format!("Cannot convert from type `{}` to `str`", value.type_key())));
    };
    required_index(key).map(TypeIndex)
}

/// Makes an object. The first argument is its type, followed by alternating names and values of fields. A field that is
/// not named gets its default.
///
/// # Errors
/// As [`empty_object`]; `TypeError` for a field that the type doesn't have, or a missing one without a default; any
/// error of a setter.
pub(crate) fn from_fields(args: &[AnyView<'_>]) -> Result<Any> {
    let Some((first, rest)) = args.split_first() else {
        return Err(type_error("ffi.MakeObjectFromPackedArgs: expected a type"));
    };
    let index = type_of(first)?;
    let (pairs, []) = rest.as_chunks::<2>() else {
        return Err(check_failed("args.size() % 2 == 1", ""));
    };
    let object = empty_object(index)?;
    let mut given = Vec::with_capacity(pairs.len());
    for [name, value] in pairs {
        given.push(Some((name.cast::<Str>()?, value)));
    }
    for info in fields(index)? {
        let named = |entry: &&mut Option<(Str, &AnyView<'_>)>| {
            entry.as_ref().is_some_and(|(name, _)| name.as_bytes() == field::name(info))
        };
        // SAFETY: the field is one of the object's type, and no other code has the object.
        unsafe {
            if let Some((_, value)) = given.iter_mut().find(named).and_then(Option::take) {
                field::set(info, &object, *value)?;
            } else if field::has(info, kTVMFFIFieldFlagBitMaskHasDefault) {
                field::set_default(info, &object)?;
            } else {
                let name = String::from_utf8_lossy(field::name(info));
                return Err(type_error(&format!("Required field `{name}` not set in type `{}`", key_of(index))));
            }
        }
    }
    match given.into_iter().flatten().next() {
        None => Ok(object.into()),
        Some((name, _)) => {
            let name = String::from_utf8_lossy(name.as_bytes());
            Err(type_error(&format!("Type `{}` does not have field `{name}`", key_of(index))))
        }
    }
}
