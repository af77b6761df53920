//! Conversions of strings, bytes, tensors and the other objects.
//! Arguments borrow where the ABI has a borrowed form, and are copied where it has none.
//! Rules: upstream's `TypeTraits` in string.h, container/tensor.h, object.h.

use std::ffi::{CStr, CString};
use std::marker::PhantomData;

use super::{Any, AnyView, Arg, ToAnyView, TryFromAny};
use crate::abi::*;
use crate::container::{Array, Dict, List, Map};
use crate::error::{Error, Result, type_mismatch, value_error};
use crate::function::Function;
use crate::module::Module;
use crate::object::{AsObject, ObjectRef};
use crate::shape::Shape;
use crate::string::{Bytes, Str, small_value};
use crate::tensor::{Tensor, TensorView};

impl ToAnyView for str {
    fn to_arg(&self) -> Arg<'_> {
        match small_value(self.as_bytes(), TypeIndex::SMALL_STR) {
            Some(raw) => Arg { raw, owned: false, borrow: PhantomData },
            None => Arg::owned(Str::new(self).into()),
        }
    }
}

impl ToAnyView for String {
    fn to_arg(&self) -> Arg<'_> {
        self.as_str().to_arg()
    }
}

impl ToAnyView for CStr {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        Arg::pointer(TypeIndex::RAW_STR, self.as_ptr().cast_mut().cast())
    }
}

impl ToAnyView for CString {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        self.as_c_str().to_arg()
    }
}

impl ToAnyView for [u8] {
    fn to_arg(&self) -> Arg<'_> {
        match small_value(self, TypeIndex::SMALL_BYTES) {
            Some(raw) => Arg { raw, owned: false, borrow: PhantomData },
            None => Arg::owned(Bytes::new(self).into()),
        }
    }
}

impl ToAnyView for Str {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        Arg { raw: self.raw(), owned: false, borrow: PhantomData }
    }
}

impl ToAnyView for Bytes {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        Arg { raw: self.raw(), owned: false, borrow: PhantomData }
    }
}

impl From<Str> for Any {
    fn from(value: Str) -> Self {
        Any(value.into_raw())
    }
}

impl From<Bytes> for Any {
    fn from(value: Bytes) -> Self {
        Any(value.into_raw())
    }
}

impl From<&str> for Any {
    fn from(value: &str) -> Self {
        Str::new(value).into()
    }
}

impl From<String> for Any {
    fn from(value: String) -> Self {
        Str::new(&value).into()
    }
}

impl From<&[u8]> for Any {
    fn from(value: &[u8]) -> Self {
        Bytes::new(value).into()
    }
}

impl TryFromAny for Str {
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        let Some(bytes) = view.str_bytes() else {
            return Err(type_mismatch("ffi.String", view.type_index()));
        };
        if let Err(error) = std::str::from_utf8(bytes) {
            return Err(value_error(&format!("string is not UTF-8: {error}")));
        }
        let owned = view.to_owned()?;
        // SAFETY: the value is one of the string types, owned (a raw string was copied), and its
        // bytes are UTF-8.
        Ok(unsafe { Str::from_raw(owned.into_raw()) })
    }
}

impl TryFromAny for String {
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        Str::try_from_view(view).map(|text| text.as_str().to_owned())
    }
}

impl TryFromAny for Bytes {
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        if view.as_bytes().is_none() {
            return Err(type_mismatch("ffi.Bytes", view.type_index()));
        }
        let owned = view.to_owned()?;
        // SAFETY: the value is one of the bytes types, owned (a byte array was copied).
        Ok(unsafe { Bytes::from_raw(owned.into_raw()) })
    }
}

impl ToAnyView for DLTensor {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        let tensor: *const DLTensor = self;
        Arg::pointer(TypeIndex::DL_TENSOR_PTR, tensor.cast_mut().cast())
    }
}

impl ToAnyView for *mut DLTensor {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        Arg::pointer(TypeIndex::DL_TENSOR_PTR, self.cast())
    }
}

impl TryFromAny for *mut DLTensor {
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        view.as_dl_tensor().ok_or_else(|| type_mismatch("DLTensor*", view.type_index()))
    }
}

impl ToAnyView for TensorView<'_> {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        self.as_dl_tensor().to_arg()
    }
}

impl ToAnyView for ObjectRef {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        Arg::pointer(self.type_index(), self.as_ptr().cast())
    }
}

impl From<ObjectRef> for Any {
    #[inline]
    fn from(value: ObjectRef) -> Self {
        let index = value.type_index();
        Any(TVMFFIAny::from_ptr(index, value.into_raw().cast()))
    }
}

impl TryFromAny for ObjectRef {
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        view.object(|_| true).ok_or_else(|| type_mismatch("ffi.Object", view.type_index()))
    }
}

macro_rules! object_values {
    ($($ty:ty),*) => {$(
        impl ToAnyView for $ty {
            #[inline]
            fn to_arg(&self) -> Arg<'_> {
                Arg::pointer(<$ty>::TYPE_INDEX, self.as_object().as_ptr().cast())
            }
        }

        impl From<$ty> for Any {
            #[inline]
            fn from(value: $ty) -> Self {
                value.into_object().into()
            }
        }
    )*};
}
object_values!(Function, Tensor, Module, Shape, Error, Array, List, Map, Dict);

/// Types that read objects of their own type index only.
macro_rules! exact_objects {
    ($($ty:ty),*) => {$(
        impl TryFromAny for $ty {
            #[track_caller]
            fn try_from_view(view: AnyView<'_>) -> Result<Self> {
                match view.object(|index| index == <$ty>::TYPE_INDEX).filter(<$ty>::has_layout) {
                    // SAFETY: the object's type index and its layout were checked.
                    Some(object) => Ok(unsafe { <$ty>::from_object_unchecked(object) }),
                    None => Err(type_mismatch(
                        <$ty>::TYPE_INDEX.static_type_key().unwrap_or("ffi.Object"),
                        view.type_index(),
                    )),
                }
            }
        }
    )*};
}
exact_objects!(Function, Tensor, Module, Error);

impl<T> From<Option<T>> for Any
where
    Any: From<T>,
{
    fn from(value: Option<T>) -> Self {
        value.map_or_else(Any::none, Any::from)
    }
}
