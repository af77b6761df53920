//! Conversions of objects: of untyped references, and macros that implement those of typed handles. Rules: upstream's
//! `TypeTraits` in object.h.

use super::arg::{Arg, ToAnyView};
use super::value::{Any, AnyView, TryFromAny};
use crate::abi::*;
use crate::error::{Error, Result, type_mismatch};
use crate::heap::ObjectRef;

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

impl<T> From<Option<T>> for Any
where
    Any: From<T>,
{
    fn from(value: Option<T>) -> Self {
        value.map_or_else(Any::none, Any::from)
    }
}

/// Implements `TryFrom` for types that [`TryFromAny`] reads.
macro_rules! try_from_any {
    ([$($params:tt)*] $ty:ty) => {
        impl<$($params)*> TryFrom<$crate::any::Any> for $ty {
            type Error = $crate::error::Error;

            #[track_caller]
            fn try_from(value: $crate::any::Any) -> $crate::error::Result<Self> {
                value.cast()
            }
        }

        impl<$($params)*> TryFrom<$crate::any::AnyView<'_>> for $ty {
            type Error = $crate::error::Error;

            #[track_caller]
            fn try_from(value: $crate::any::AnyView<'_>) -> $crate::error::Result<Self> {
                value.cast()
            }
        }
    };
    ($($ty:ty),*) => {$($crate::any::try_from_any!([] $ty);)*};
}
pub(crate) use try_from_any;

/// Implements the conversions from typed handles to values, and `TryFrom` for the conversions back by [`TryFromAny`].
macro_rules! object_values {
    ($($ty:ty),*) => {$(
        impl $crate::any::ToAnyView for $ty {
            #[inline]
            fn to_arg(&self) -> $crate::any::Arg<'_> {
                let object = $crate::heap::AsObject::as_object(self);
                $crate::any::Arg::pointer(<$ty as $crate::heap::AsObject>::TYPE_INDEX, object.as_ptr().cast())
            }
        }

        impl From<$ty> for $crate::any::Any {
            #[inline]
            fn from(value: $ty) -> Self {
                $crate::heap::AsObject::into_object(value).into()
            }
        }

        $crate::any::try_from_any!($ty);
    )*};
}
pub(crate) use object_values;

/// Like `object_values`, for types that accept only objects of their own type index.
macro_rules! exact_objects {
    ($($ty:ty),*) => {$(
        $crate::any::object_values!($ty);

        impl $crate::any::TryFromAny for $ty {
            #[track_caller]
            fn try_from_view(view: $crate::any::AnyView<'_>) -> $crate::error::Result<Self> {
                match view.object(<$ty as $crate::heap::AsObject>::is_object) {
                    // SAFETY: the object's type index and its layout were checked.
                    Some(object) => Ok(unsafe { <$ty as $crate::heap::AsObject>::from_object_unchecked(object) }),
                    None => Err($crate::error::type_mismatch(
                        <$ty as $crate::heap::AsObject>::TYPE_INDEX.static_type_key().unwrap_or("ffi.Object"),
                        view.inner_type_index(),
                    )),
                }
            }
        }
    )*};
}
pub(crate) use exact_objects;

try_from_any!(ObjectRef);
exact_objects!(Error);
