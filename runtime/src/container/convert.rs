//! Conversions of values to containers, and of containers to shapes.
//! A container of the other mutability is copied.
//! Rules: upstream's `SeqTypeTraitsBase`, `MapTypeTraitsBase`, `TypeTraits<Shape>`.

use super::array::Array;
use super::dict::Dict;
use super::list::List;
use super::map::Map;
use crate::any::{Any, AnyView, TryFromAny, object_values};
use crate::error::{Error, Result, kind, type_mismatch};
use crate::heap::{AsObject, ObjectRef};
use crate::shape::Shape;

object_values!(Array, List, Map, Dict);

/// Converts an object of `T`'s own type, or an object of type `U` with `convert`.
#[track_caller]
fn own_or<T: AsObject, U: AsObject>(view: AnyView<'_>, convert: impl FnOnce(U) -> T) -> Result<T> {
    if let Some(object) = view.object(T::is_object) {
        // SAFETY: the object is a `T`.
        return Ok(unsafe { T::from_object_unchecked(object) });
    }
    if let Some(Ok(other)) = view.shared_object().map(ObjectRef::downcast::<U>) {
        return Ok(convert(other));
    }
    let (key, index) = (T::TYPE_INDEX.static_type_key().unwrap_or("ffi.Object"), view.inner_type_index());
    match index == U::TYPE_INDEX {
        // The type index matches, so the error is in the layout.
        true => Err(type_mismatch(U::TYPE_INDEX.static_type_key().unwrap_or(key), index)),
        false => Err(type_mismatch(key, index)),
    }
}

impl TryFromAny for Array {
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        own_or(view, |list: List| list.to_vec().into())
    }
}

impl TryFromAny for List {
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        own_or(view, |array: Array| array.to_vec().into())
    }
}

impl TryFromAny for Map {
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        own_or(view, |dict: Dict| dict.to_map())
    }
}

impl TryFromAny for Dict {
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        own_or(view, |map: Map| Dict::from(&map))
    }
}

impl TryFromAny for Shape {
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        if let Some(shape) = view.object(Shape::is_object) {
            return shape.try_into();
        }
        // The sequence stays in the argument, because one of its elements may not be an integer.
        let sequence = view.shared_object().ok_or_else(|| type_mismatch("ffi.Shape", view.type_index()))?;
        let Ok(array) = Any::from(sequence).cast::<Array>() else {
            return Err(type_mismatch("ffi.Shape", view.inner_type_index()));
        };
        let mut extents = Vec::with_capacity(array.len());
        for (index, extent) in array.iter().enumerate() {
            match extent.cast::<i64>() {
                Ok(extent) => extents.push(extent),
                Err(_) => {
                    let got = extent.type_key();
                    let message = format!("expected ffi.Shape, got a sequence with {got} at index {index}");
                    return Err(Error::new(kind::TYPE_ERROR, &message));
                }
            }
        }
        Ok(Shape::new(&extents))
    }
}
