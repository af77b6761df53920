//! Conversions of Rust's collections: vectors, arrays and tuples to `ffi.Array`, maps to `ffi.Map`.
//! As with upstream's typed containers, the conversions back accept any array or list, or any map or dict, if every
//! element converts.
//! Rules: upstream's `TypeTraits` of `Array<T>`, `Map<K, V>` and `Tuple<T...>`.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{BuildHasher, Hash};

use super::array::Array;
use super::item::ContainerItem;
use super::map::Map;
use crate::any::{Any, AnyView, Arg, ToAnyView, TryFromAny};
use crate::error::{Error, Result, type_error};

/// Converts an element to `T`. The error names the element at fault.
#[track_caller]
pub(super) fn element<T: TryFromAny>(value: &Any, place: impl fmt::Display) -> Result<T> {
    value.cast().map_err(|error| Error::new(error.kind(), &format!("{place}: {}", error.message())))
}

/// The elements of an array or list, which must have exactly `N`.
#[track_caller]
fn elements<const N: usize>(view: AnyView<'_>) -> Result<Array> {
    let array: Array = view.cast()?;
    match array.len() == N {
        true => Ok(array),
        false => Err(type_error(&format!("expected an array of {N} elements, got {}", array.len()))),
    }
}

impl<T: Into<Any>> From<Vec<T>> for Any {
    fn from(values: Vec<T>) -> Self {
        values.into_iter().collect::<Array>().into()
    }
}

impl<T: Into<Any>, const N: usize> From<[T; N]> for Any {
    fn from(values: [T; N]) -> Self {
        values.into_iter().collect::<Array>().into()
    }
}

impl<T: Into<Any> + Clone> ToAnyView for Vec<T> {
    fn to_arg(&self) -> Arg<'_> {
        Arg::owned(self.iter().cloned().collect::<Array>().into())
    }
}

impl<T: Into<Any> + Clone, const N: usize> ToAnyView for [T; N] {
    fn to_arg(&self) -> Arg<'_> {
        Arg::owned(self.iter().cloned().collect::<Array>().into())
    }
}

impl<T: TryFromAny> TryFromAny for Vec<T> {
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        let array: Array = view.cast()?;
        array.iter().enumerate().map(|(i, value)| element(value, format_args!("element {i}"))).collect()
    }
}

impl<T: TryFromAny, const N: usize> TryFromAny for [T; N] {
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        let values: Vec<T> = elements::<N>(view)?
            .iter()
            .enumerate()
            .map(|(i, value)| element(value, format_args!("element {i}")))
            .collect::<Result<_>>()?;
        values.try_into().map_err(|_| type_error("expected an array of another length"))
    }
}

macro_rules! maps {
    ($($map:ident, [$($bound:path),*], [$($hasher:ident: $hasher_bound:path),*];)*) => {$(
        /// Converts to a map. An error of a key's `__any_hash__` or `__any_equal__` is reported when the value is read.
        impl<K: Into<Any> $(+ $bound)*, V: Into<Any>, $($hasher: $hasher_bound),*> TryFrom<$map<K, V, $($hasher),*>>
            for Map
        {
            type Error = Error;

            fn try_from(entries: $map<K, V, $($hasher),*>) -> Result<Self> {
                Map::try_from_entries(entries)
            }
        }

        impl<K: TryFromAny $(+ $bound)*, V: TryFromAny, $($hasher: $hasher_bound + Default),*> TryFromAny
            for $map<K, V, $($hasher),*>
        {
            #[track_caller]
            fn try_from_view(view: AnyView<'_>) -> Result<Self> {
                let map: Map = view.cast()?;
                let entry = |(place, (key, value))| {
                    Ok((element(key, format_args!("key {place}"))?, element(value, format_args!("value {place}"))?))
                };
                map.iter().enumerate().map(entry).collect()
            }
        }

        impl<K: super::PlainKey $(+ $bound)*, V: Into<Any>, $($hasher: $hasher_bound),*> From<$map<K, V, $($hasher),*>>
            for Any
        {
            fn from(entries: $map<K, V, $($hasher),*>) -> Self {
                entries.into_iter().collect::<Map>().into()
            }
        }

        impl<K: super::PlainKey + Clone $(+ $bound)*, V: Into<Any> + Clone, $($hasher: $hasher_bound),*> ToAnyView
            for $map<K, V, $($hasher),*>
        {
            fn to_arg(&self) -> Arg<'_> {
                Arg::owned(self.iter().map(|(key, value)| (key.clone(), value.clone())).collect::<Map>().into())
            }
        }
    )*};
}
maps! {
    HashMap, [Eq, Hash], [S: BuildHasher];
    BTreeMap, [Ord], [];
}

macro_rules! tuples {
    ($($count:literal: $($ty:ident $place:tt),*;)*) => {$(
        impl<$($ty: Into<Any>),*> From<($($ty,)*)> for Any {
            fn from(values: ($($ty,)*)) -> Self {
                <Array>::from_iter([$(values.$place.into() as Any),*]).into()
            }
        }

        impl<$($ty: Into<Any> + Clone),*> ToAnyView for ($($ty,)*) {
            fn to_arg(&self) -> Arg<'_> {
                Arg::owned(self.clone().into())
            }
        }

        impl<$($ty: TryFromAny + Into<Any>),*> ContainerItem for ($($ty,)*) {}

        impl<$($ty: TryFromAny),*> TryFromAny for ($($ty,)*) {
            #[track_caller]
            fn try_from_view(view: AnyView<'_>) -> Result<Self> {
                let array = elements::<$count>(view)?;
                Ok(($(element(&array[$place], format_args!("element {}", $place))?,)*))
            }
        }
    )*};
}
tuples! {
    1: A 0;
    2: A 0, B 1;
    3: A 0, B 1, C 2;
    4: A 0, B 1, C 2, D 3;
    5: A 0, B 1, C 2, D 3, E 4;
    6: A 0, B 1, C 2, D 3, E 4, F 5;
    7: A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
}
