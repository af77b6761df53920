//! Conversions of strings and bytes. Arguments borrow where the ABI has a borrowed form; others are copied. Rules:
//! upstream's `TypeTraits` in string.h.

use std::ffi::{CStr, CString};

use super::arg::{Arg, ToAnyView};
use super::objects::try_from_any;
use super::value::{Any, AnyView, TryFromAny};
use crate::abi::*;
use crate::error::{Result, type_mismatch, value_error};
use crate::string::{Bytes, Str, small_value};

impl ToAnyView for str {
    fn to_arg(&self) -> Arg<'_> {
        match small_value(self.as_bytes(), TypeIndex::SMALL_STR) {
            Some(raw) => Arg::raw(raw),
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
            Some(raw) => Arg::raw(raw),
            None => Arg::owned(Bytes::new(self).into()),
        }
    }
}

impl ToAnyView for Str {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        Arg::raw(self.raw())
    }
}

impl ToAnyView for Bytes {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        Arg::raw(self.raw())
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

/// The string in a value of any of the three string types, without a copy.
#[track_caller]
pub(crate) fn text<'a>(view: &'a AnyView<'_>) -> Result<&'a str> {
    let Some(bytes) = view.str_bytes() else {
        return Err(type_mismatch("ffi.String", view.type_index()));
    };
    std::str::from_utf8(bytes).map_err(|error| value_error(&format!("string is not UTF-8: {error}")))
}

impl TryFromAny for Str {
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        text(&view)?;
        let owned = view.to_owned()?;
        // SAFETY: the value is one of the string types, owned (a raw string was copied), and its
        // bytes are UTF-8.
        Ok(unsafe { Str::from_raw(owned.into_raw()) })
    }
}

impl TryFromAny for String {
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        text(&view).map(str::to_owned)
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

try_from_any!(Str, String, Bytes);
