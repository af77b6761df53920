//! The element types of typed containers, and how elements are checked.
//! Rules: upstream's `SeqTypeTraitsBase` and `MapTypeTraitsBase`.

use super::array::Array;
use super::dict::Dict;
use super::list::List;
use super::map::Map;
use crate::abi::{DLDataType, DLDevice, TypeIndex};
use crate::any::{Any, AnyView, TryFromAny};
use crate::big_int::BigInt;
use crate::error::{Error, Result};
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::shape::Shape;
use crate::string::{Bytes, Str};
use crate::tensor::Tensor;

/// A type for the elements of an [`Array`], [`List`], [`Map`] or [`Dict`].
///
/// You can use every type that converts to and from [`Any`], except `Any` itself. Containers of `Any` have their own
/// methods, which return references or skip the checks.
#[diagnostic::on_unimplemented(
    message = "containers of TVM FFI can't have `{Self}` as their type of elements",
    label = "expected a type that converts to and from `Any`",
    note = "implement `ContainerItem` for your own type; containers of mixed types have no parameter: `Array`, `List`, \
        `Map`, `Dict`"
)]
pub trait ContainerItem: TryFromAny + Into<Any> {}

macro_rules! items {
    ($($ty:ty),*) => {$(impl ContainerItem for $ty {})*};
}
items!((), i8, i16, i32, i64, u8, u16, u32, u64, isize, usize, f32, f64, bool, DLDataType, DLDevice);
items!(u128, i128, BigInt, Str, String, Bytes, ObjectRef, Error, Function, Shape, Tensor, Array, List, Map, Dict);

impl<T: ContainerItem> ContainerItem for Option<T> where Any: From<T> {}
impl<T: ContainerItem> ContainerItem for Vec<T> {}
impl<T: ContainerItem> ContainerItem for Array<T> {}
impl<T: ContainerItem> ContainerItem for List<T> {}
impl<K: ContainerItem, V: TryFromAny + Into<Any>> ContainerItem for Map<K, V> {}
impl<K: ContainerItem, V: TryFromAny + Into<Any>> ContainerItem for Dict<K, V> {}

/// True if an element's stored form equals that of its conversion. If this holds for all elements, the container stays
/// the same object.
pub(super) fn is_stored_so(element: &Any, converted: &Any) -> bool {
    let (element, converted) = (element.as_raw(), converted.as_raw());
    let is_text = [TypeIndex::STR.0, TypeIndex::BYTES.0].contains(&element.type_index);
    element.type_index == converted.type_index && (is_text || element.bits() == converted.bits())
}

/// Converts a view to a `T` through the untyped container `U`. An r-value argument is taken only on success.
#[track_caller]
pub(super) fn checked<U: TryFromAny, T>(view: AnyView<'_>, check: impl FnOnce(U) -> Result<T>) -> Result<T> {
    let Some(object) = view.shared_object() else {
        return check(view.cast()?);
    };
    let typed = check(Any::from(object).cast()?)?;
    drop(view.object(|_| view.type_index() == TypeIndex::OBJECT_RVALUE_REF));
    Ok(typed)
}
