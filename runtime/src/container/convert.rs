//! Conversions of values into containers, and of containers into shapes.
//! A container of the other kind, mutable or not, is copied.
//! Rules: upstream's `SeqTypeTraitsBase`, `MapTypeTraitsBase`, `TypeTraits<Shape>`.

use super::array::Array;
use super::dict::Dict;
use super::list::List;
use super::map::Map;
use crate::abi::TypeIndex;
use crate::any::{AnyView, TryFromAny, object_values};
use crate::error::{Error, Result, kind, type_mismatch};
use crate::heap::{AsObject, ObjectRef};
use crate::shape::Shape;

object_values!(Array, List, Map, Dict);

/// A `T` from an object of its own type, or else from one of type `U`, which `convert` takes.
#[track_caller]
fn own_or<T: AsObject, U: AsObject>(view: AnyView<'_>, convert: impl FnOnce(U) -> T) -> Result<T> {
    let object = view.object(|index| index == T::TYPE_INDEX || index == U::TYPE_INDEX);
    let key = T::TYPE_INDEX.static_type_key().unwrap_or("ffi.Object");
    let Some(object) = object else {
        return Err(type_mismatch(key, view.type_index()));
    };
    // Its type is right, so what is wrong is its layout.
    let mismatch = |object: ObjectRef| type_mismatch(&object.type_key(), object.type_index());
    if object.type_index() == T::TYPE_INDEX {
        return object.downcast().map_err(mismatch);
    }
    object.downcast().map(convert).map_err(mismatch)
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
        if let Some(shape) = view.object(|index| index == TypeIndex::SHAPE) {
            return shape.try_into();
        }
        let Ok(array) = view.cast::<Array>() else {
            return Err(type_mismatch("ffi.Shape", view.type_index()));
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
