//! C symbols that create values (strings, bytes, big integers) and convert data types to strings and back. Strings from
//! C need not be UTF-8; their bytes are kept unchanged. Header sections: "string/bytes support APIs", "dtype string
//! support APIs".

use std::ffi::c_int;

use super::dtypes;
use crate::abi::*;
use crate::any::Any;
use crate::big_int;
use crate::boundary::{guard, required, required_bytes, required_out, required_text};
use crate::string::{Bytes, Str, raw_str_from_bytes};

/// Creates a string value.
///
/// # Safety
/// `input` must be NULL or a valid byte array; `out` NULL or writable.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIStringFromByteArray(input: *const TVMFFIByteArray, out: *mut TVMFFIAny) -> c_int {
    guard(|| {
        let out = required_out(out, "out")?;
        // SAFETY: promised by the caller; `out` is not NULL.
        unsafe { out.write(raw_str_from_bytes(required_bytes(input, "input")?)) };
        Ok(())
    })
}

/// Creates a bytes value.
///
/// # Safety
/// As [`TVMFFIStringFromByteArray`].
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIBytesFromByteArray(input: *const TVMFFIByteArray, out: *mut TVMFFIAny) -> c_int {
    guard(|| {
        let out = required_out(out, "out")?;
        // SAFETY: promised by the caller; `out` is not NULL.
        unsafe {
            let value: Any = Bytes::new(required_bytes(input, "input")?).into();
            out.write(value.into_raw());
        }
        Ok(())
    })
}

/// Creates an integer from its words.
///
/// # Safety
/// As [`TVMFFIStringFromByteArray`].
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIBigIntFromByteArray(input: *const TVMFFIByteArray, out: *mut TVMFFIAny) -> c_int {
    guard(|| {
        let out = required_out(out, "out")?;
        // SAFETY: promised by the caller; `out` is not NULL.
        unsafe {
            out.write(TVMFFIAny::none());
            let value: Any = big_int::from_content(required_bytes(input, "input")?)?.into();
            out.write(value.into_raw());
        }
        Ok(())
    })
}

/// The words of an integer, which live as long as the value; empty for NULL and for values that aren't integers.
///
/// # Safety
/// `value` must be NULL or a valid value.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIBigIntGetContentByteArray(value: *const TVMFFIAny) -> TVMFFIByteArray {
    // SAFETY: promised by the caller.
    unsafe { value.as_ref() }.map_or(TVMFFIByteArray::EMPTY, |value| {
        // SAFETY: as above.
        TVMFFIByteArray::from_slice(unsafe { big_int::content_of(value) })
    })
}

/// Reads the name of a data type.
///
/// # Safety
/// `str` must be NULL or a valid byte array; `out` NULL or writable.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIDataTypeFromString(str: *const TVMFFIByteArray, out: *mut DLDataType) -> c_int {
    guard(|| {
        let out = required_out(out, "out")?;
        // SAFETY: promised by the caller.
        let text = unsafe { required_text(str, "str")? };
        let dtype = dtypes::parse(&text)?;
        // SAFETY: `out` is not NULL, and writable by contract.
        unsafe { out.write(dtype) };
        Ok(())
    })
}

/// Writes the name of a data type as a string value.
///
/// # Safety
/// `dtype` must be NULL or readable; `out` NULL or writable.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIDataTypeToString(dtype: *const DLDataType, out: *mut TVMFFIAny) -> c_int {
    guard(|| {
        let out = required_out(out, "out")?;
        // SAFETY: promised by the caller.
        let dtype = unsafe { *required(dtype, "dtype")? };
        let value: Any = Str::new(&dtypes::name(dtype)?).into();
        // SAFETY: `out` is not NULL, and writable by contract.
        unsafe { out.write(value.into_raw()) };
        Ok(())
    })
}
