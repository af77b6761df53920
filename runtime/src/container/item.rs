//! The types that typed containers hold, and how elements are checked.
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

/// A type of the elements of an [`Array`], [`List`], [`Map`] or [`Dict`].
///
/// Every type that converts to and from [`Any`] may be one, except `Any` itself: containers of `Any` have methods of their own, which hand
/// out references or skip the checks.
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

/// Whether an element is stored as its conversion would be: a container in which all are stays the same object.
pub(super) fn is_stored_so(element: &Any, converted: &Any) -> bool {
    let (element, converted) = (element.as_raw(), converted.as_raw());
    let is_text = [TypeIndex::STR.0, TypeIndex::BYTES.0].contains(&element.type_index);
    element.type_index == converted.type_index && (is_text || element.bits() == converted.bits())
}

/// A `T` of a view by way of the untyped container `U`. An r-value argument is taken only when that succeeds.
#[track_caller]
pub(super) fn checked<U: TryFromAny, T>(view: AnyView<'_>, check: impl FnOnce(U) -> Result<T>) -> Result<T> {
    let Some(object) = view.shared_object() else {
        return check(view.cast()?);
    };
    let typed = check(Any::from(object).cast()?)?;
    drop(view.object(|_| view.type_index() == TypeIndex::OBJECT_RVALUE_REF));
    Ok(typed)
}
