//! Conversions between plain Rust values and [`Any`] / [`AnyView`], following upstream's `TypeTraits`. Reading checks
//! the range of integers, which upstream casts silently.

use super::arg::{Arg, ToAnyView};
use super::objects::try_from_any;
use super::value::{Any, AnyView, TryFromAny};
use crate::abi::*;
use crate::error::{Result, type_mismatch, value_error};

impl<T: TryFromAny> TryFromAny for Option<T> {
    #[inline]
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        if view.is_none() {
            return Ok(None);
        }
        T::try_from_view(view).map(Some)
    }
}

impl TryFromAny for Any {
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        view.to_owned()
    }
}

impl ToAnyView for () {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        Arg::view(AnyView::none())
    }
}

impl TryFromAny for () {
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        if view.is_none() {
            return Ok(());
        }
        Err(type_mismatch("None", view.type_index()))
    }
}

impl From<()> for Any {
    fn from((): ()) -> Self {
        Self::none()
    }
}

/// The integer in an int or bool value.
#[inline]
fn integer(view: AnyView<'_>) -> Option<i64> {
    match view.type_index() {
        TypeIndex::INT | TypeIndex::BOOL => Some(view.as_raw().bits().cast_signed()),
        _ => None,
    }
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl ToAnyView for $ty {
            #[inline]
            fn to_arg(&self) -> Arg<'_> {
                Arg::plain(TypeIndex::INT, *self as i64 as u64)
            }
        }

        impl TryFromAny for $ty {
            #[inline]
            #[track_caller]
            fn try_from_view(view: AnyView<'_>) -> Result<Self> {
                let Some(value) = integer(view) else {
                    return Err(type_mismatch("int", view.type_index()));
                };
                <$ty>::try_from(value).map_err(|_| {
                    value_error(&format!("{value} is out of range for {}", stringify!($ty)))
                })
            }
        }

        impl From<$ty> for Any {
            #[inline]
            fn from(value: $ty) -> Self {
                Any(TVMFFIAny::from_bits(TypeIndex::INT, value as i64 as u64))
            }
        }
    )*};
}
// `big_int` has the types that don't fit in 64 bits with a sign.
integers!(i8, i16, i32, i64, u8, u16, u32, isize);

macro_rules! floats {
    ($($ty:ty),*) => {$(
        impl ToAnyView for $ty {
            #[inline]
            fn to_arg(&self) -> Arg<'_> {
                Arg::plain(TypeIndex::FLOAT, f64::from(*self).to_bits())
            }
        }

        impl TryFromAny for $ty {
            #[inline]
            #[track_caller]
            fn try_from_view(view: AnyView<'_>) -> Result<Self> {
                if view.type_index() == TypeIndex::FLOAT {
                    return Ok(f64::from_bits(view.as_raw().bits()) as $ty);
                }
                match integer(view) {
                    Some(value) => Ok(value as $ty),
                    None => Err(type_mismatch("float", view.type_index())),
                }
            }
        }

        impl From<$ty> for Any {
            #[inline]
            fn from(value: $ty) -> Self {
                Any(TVMFFIAny::from_bits(TypeIndex::FLOAT, f64::from(value).to_bits()))
            }
        }
    )*};
}
floats!(f32, f64);

impl ToAnyView for bool {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        Arg::plain(TypeIndex::BOOL, u64::from(*self))
    }
}

impl TryFromAny for bool {
    #[inline]
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        match integer(view) {
            Some(value) => Ok(value != 0),
            None => Err(type_mismatch("bool", view.type_index())),
        }
    }
}

impl From<bool> for Any {
    #[inline]
    fn from(value: bool) -> Self {
        Any(TVMFFIAny::from_bits(TypeIndex::BOOL, u64::from(value)))
    }
}

fn dtype_raw(value: DLDataType) -> TVMFFIAny {
    let lanes = u64::from(value.lanes) << 16;
    let bits = u64::from(value.code) | u64::from(value.bits) << 8 | lanes;
    // All eight bytes are written: code, bits, lanes, zeros (little-endian targets).
    TVMFFIAny::from_bits(TypeIndex::DATA_TYPE, bits)
}

fn device_raw(value: DLDevice) -> TVMFFIAny {
    TVMFFIAny { type_index: TypeIndex::DEVICE.0, zero_padding: 0, v: TVMFFIAnyValue { v_device: value } }
}

const _: () = assert!(cfg!(target_endian = "little"));

macro_rules! named_values {
    ($($ty:ty, $raw:ident, $index:expr, $field:ident, $expected:literal;)*) => {$(
        impl ToAnyView for $ty {
            #[inline]
            fn to_arg(&self) -> Arg<'_> {
                Arg::raw($raw(*self))
            }
        }

        impl TryFromAny for $ty {
            #[track_caller]
            fn try_from_view(view: AnyView<'_>) -> Result<Self> {
                if view.type_index() == $index {
                    // SAFETY: the type index says which field is live; any bits are valid for it.
                    return Ok(unsafe { view.as_raw().v.$field });
                }
                match view.as_str() {
                    Some(name) => name.parse().map_err(|error| value_error(&format!("{error}"))),
                    None => Err(type_mismatch($expected, view.type_index())),
                }
            }
        }

        impl From<$ty> for Any {
            fn from(value: $ty) -> Self {
                Any($raw(value))
            }
        }
    )*};
}
named_values! {
    DLDataType, dtype_raw, TypeIndex::DATA_TYPE, v_dtype, "DataType";
    DLDevice, device_raw, TypeIndex::DEVICE, v_device, "Device";
}

try_from_any!(i8, i16, i32, i64, u8, u16, u32, isize, f32, f64, bool, DLDataType, DLDevice);
