//! Conversions from any value to a built-in type, the attribute `__ffi_convert__`.

use crate::abi::TypeIndex;
use crate::any::{Any, AnyView, TryFromAny};
use crate::container::{Array, Dict, List, Map};
use crate::error::{Error, Result, type_error};
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::shape::Shape;
use crate::string::{Bytes, Str};
use crate::tensor::Tensor;
use crate::type_table::{Definition, is_instance, key_to_index};

/// A function that converts its argument. `name` is the target type's name in messages.
fn conversion(name: &'static str, convert: fn(&AnyView<'_>) -> Option<Any>) -> Any {
    let function = Function::built_in(move |args| match args {
        [value] => convert(value).ok_or_else(|| cannot_cast(value, name)),
        _ => Err(type_error(&format!("a conversion to `{name}` takes one argument, got {}", args.len()))),
    });
    function.into()
}

#[cold]
fn cannot_cast(value: &AnyView<'_>, name: &str) -> Error {
    type_error(&format!("Cannot cast from `{}` to `{name}`", value.type_key()))
}

fn to<T: TryFromAny + Into<Any>>(value: &AnyView<'_>) -> Option<Any> {
    let value: Result<T> = value.cast();
    value.ok().map(T::into)
}

/// The conversions of types with static indices.
pub(super) fn conversions() -> Vec<Definition> {
    let convert =
        |key, name, function| Definition::new(key, "").attribute("__ffi_convert__", conversion(name, function));
    vec![
        convert("ffi.Object", "ffi.Object", to::<Option<ObjectRef>>),
        convert("ffi.String", "str", to::<Str>),
        convert("ffi.Bytes", "bytes", to::<Bytes>),
        convert("ffi.Error", "ffi.Error", |value| value.cast::<Error>().ok().map(Any::from)),
        convert("ffi.Function", "ffi.Function", to::<Function>),
        convert("ffi.Shape", "ffi.Shape", to::<Shape>),
        convert("ffi.Tensor", "ffi.Tensor", to::<Tensor>),
        convert("ffi.Array", "Array<Any>", to::<Array>),
        convert("ffi.Map", "Map<Any, Any>", to::<Map>),
        convert("ffi.List", "List<Any>", to::<List>),
        convert("ffi.Dict", "Dict<Any, Any>", to::<Dict>),
    ]
}

/// The conversion to the type with that key: returns the type's objects unchanged.
pub(super) fn instances_of(key: &'static str) -> Any {
    let function = Function::built_in(move |args| match args {
        [value] => {
            let wanted = key_to_index(key).map(TypeIndex);
            match value.shared_object() {
                Some(object) if wanted.is_some_and(|wanted| is_instance(object.type_index(), wanted)) => {
                    Ok(object.into())
                }
                _ => Err(cannot_cast(value, key)),
            }
        }
        _ => Err(type_error(&format!("a conversion to `{key}` takes one argument, got {}", args.len()))),
    });
    function.into()
}
