//! Strings and byte strings: up to seven bytes are in the value, longer ones in an object. Heap layout: header,
//! `TVMFFIByteArray`, the bytes, a NUL that is not counted. The bytes may also be elsewhere. Header sections:
//! `kTVMFFIStr`, `kTVMFFIBytes`, `small_str_len`.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem::ManuallyDrop;
use std::ops::Deref;

use crate::abi::*;
use crate::error::{Result, value_error};
use crate::heap::{ObjectLayout, count, make_object};

/// Maximum length in bytes of a string that a value holds itself.
pub(crate) const MAX_SMALL_LEN: usize = 7;

#[repr(C)]
struct BytesObject<const INDEX: i32> {
    header: TVMFFIObject,
    bytes: TVMFFIByteArray,
}

// SAFETY: repr(C) with the header first; the byte array follows, as in the header file.
unsafe impl<const INDEX: i32> ObjectLayout for BytesObject<INDEX> {
    const TYPE_INDEX: TypeIndex = TypeIndex(INDEX);
}

/// Bytes stored elsewhere, with the value that keeps them alive.
#[repr(C)]
struct BytesView<T> {
    header: TVMFFIObject,
    bytes: TVMFFIByteArray,
    keep_alive: T,
}

// SAFETY: repr(C) with the header first; the byte array follows, as in the header file.
unsafe impl<T> ObjectLayout for BytesView<T> {
    const TYPE_INDEX: TypeIndex = TypeIndex::BYTES;

    unsafe fn drop_fields(object: *mut Self) {
        // SAFETY: promised by the caller.
        unsafe { (&raw mut (*object).keep_alive).drop_in_place() };
    }
}

/// An owned value of the small or the heap type.
#[inline]
fn new_value(bytes: &[u8], small: TypeIndex, heap: TypeIndex) -> TVMFFIAny {
    if let Some(value) = small_value(bytes, small) {
        return value;
    }
    let new =
        if heap == TypeIndex::STR { new_heap::<{ TypeIndex::STR.0 }> } else { new_heap::<{ TypeIndex::BYTES.0 }> };
    TVMFFIAny::from_ptr(heap, new(bytes).cast())
}

/// The value that holds `bytes` itself, if they are few enough.
#[inline]
pub(crate) fn small_value(bytes: &[u8], small: TypeIndex) -> Option<TVMFFIAny> {
    let len = bytes.len();
    // Two reads that may overlap fill a register. A copy of a variable number of bytes would go through memory in
    // pieces.
    let low = match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        _ if len > MAX_SMALL_LEN => return None,
        (Some(&first), Some(&last)) => {
            u64::from(u32::from_le_bytes(first)) | u64::from(u32::from_le_bytes(last)) << (8 * (len - 4))
        }
        _ => match *bytes {
            [] => 0,
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_le_bytes([a, b])),
            [a, b, c, ..] => u64::from(u16::from_le_bytes([a, b])) | u64::from(c) << 16,
        },
    };
    let v_bytes = low.to_le_bytes();
    Some(TVMFFIAny { type_index: small.0, zero_padding: bytes.len() as u32, v: TVMFFIAnyValue { v_bytes } })
}

#[inline(never)]
fn new_heap<const INDEX: i32>(bytes: &[u8]) -> *mut TVMFFIObject {
    let object = make_object::<BytesObject<INDEX>>(bytes.len() + 1, |header, tail| {
        // SAFETY: the tail has room for the bytes and the NUL, and is new, so nothing overlaps.
        unsafe {
            tail.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            tail.add(bytes.len()).write(0);
        }
        BytesObject { header, bytes: TVMFFIByteArray { data: tail.cast(), size: bytes.len() } }
    });
    object.as_ptr().cast()
}

/// The bytes of a string or bytes value, small or on the heap. They live as long as `value`. `None` for a NULL object,
/// which C code may pass.
///
/// # Safety
/// `value` must hold a small or heap string or bytes. A heap object must be NULL or alive for `'a`.
pub(crate) unsafe fn bytes_of(value: &TVMFFIAny) -> Option<&[u8]> {
    if TypeIndex(value.type_index).is_object() {
        let object = value.ptr().cast::<TVMFFIObject>();
        if object.is_null() {
            return None;
        }
        // SAFETY: the byte array follows the header of string and bytes objects. It describes bytes that live as long
        // as the object.
        Some(unsafe { (*object.add(1).cast::<TVMFFIByteArray>()).as_slice() })
    } else {
        // SAFETY: a small string's payload is eight bytes, all initialised.
        let bytes = unsafe { &value.v.v_bytes };
        Some(&bytes[..(value.zero_padding as usize).min(MAX_SMALL_LEN)])
    }
}

macro_rules! string_type {
    ($(#[$doc:meta])* $name:ident, $small:expr, $heap:expr) => {
        $(#[$doc])*
        #[repr(transparent)]
        pub struct $name(TVMFFIAny);

        // SAFETY: the value is plain bytes or a counted object that never changes.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}

        impl $name {
            /// True if the value itself holds the bytes.
            pub fn is_small(&self) -> bool {
                self.0.type_index == $small.0
            }

            /// The bytes, without the NUL.
            pub fn as_bytes(&self) -> &[u8] {
                // SAFETY: `self` holds this type's value and keeps its object alive.
                unsafe { bytes_of(&self.0) }.unwrap_or_default()
            }

            /// Takes over an owned value.
            ///
            /// # Safety
            /// The value must be of one of this type's two type indices, own its object, and (for
            /// `Str`) be UTF-8.
            pub(crate) unsafe fn from_raw(value: TVMFFIAny) -> Self {
                Self(value)
            }

            pub(crate) fn into_raw(self) -> TVMFFIAny {
                ManuallyDrop::new(self).0
            }

            #[inline]
            pub(crate) fn raw(&self) -> TVMFFIAny {
                self.0
            }
        }

        impl Clone for $name {
            fn clone(&self) -> Self {
                if !self.is_small() {
                    // SAFETY: `self` keeps the object alive.
                    unsafe { count::inc_ref(self.0.v.v_obj) };
                }
                Self(self.0)
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                if !self.is_small() {
                    // SAFETY: `self` owns a strong reference and releases it here.
                    unsafe { count::dec_ref(self.0.v.v_obj) };
                }
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.as_bytes() == other.as_bytes()
            }
        }

        impl Eq for $name {}

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.as_bytes().cmp(other.as_bytes())
            }
        }
    };
}

string_type! {
    /// An immutable UTF-8 string, `ffi.String`. Dereferences to `str`.
    Str, TypeIndex::SMALL_STR, TypeIndex::STR
}
string_type! {
    /// Immutable bytes, `ffi.Bytes`. Dereferences to `[u8]`.
    Bytes, TypeIndex::SMALL_BYTES, TypeIndex::BYTES
}

impl Str {
    /// A copy of `text`.
    pub fn new(text: &str) -> Self {
        Self(new_value(text.as_bytes(), TypeIndex::SMALL_STR, TypeIndex::STR))
    }

    /// A copy of `bytes`.
    ///
    /// # Errors
    /// `ValueError` if they are not UTF-8.
    pub fn from_utf8(bytes: &[u8]) -> Result<Self> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self::new(text)),
            Err(error) => Err(value_error(&format!("string is not UTF-8: {error}"))),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        // SAFETY: every constructor checks or requires UTF-8, and strings never change.
        unsafe { std::str::from_utf8_unchecked(self.as_bytes()) }
    }
}

/// An owned string value from C's bytes, which may not be UTF-8.
#[inline]
pub(crate) fn raw_str_from_bytes(bytes: &[u8]) -> TVMFFIAny {
    new_value(bytes, TypeIndex::SMALL_STR, TypeIndex::STR)
}

impl Bytes {
    /// A copy of `bytes`.
    #[inline]
    pub fn new(bytes: &[u8]) -> Self {
        Self(new_value(bytes, TypeIndex::SMALL_BYTES, TypeIndex::BYTES))
    }

    /// Bytes that stay in place, without a NUL after them. `keep_alive` owns their memory, and is dropped with the last
    /// reference. Up to seven bytes are copied.
    ///
    /// # Safety
    /// `bytes` must stay readable and unchanged for as long as `keep_alive` lives.
    pub unsafe fn from_view(bytes: &[u8], keep_alive: impl Send + Sync + 'static) -> Self {
        if let Some(value) = small_value(bytes, TypeIndex::SMALL_BYTES) {
            return Self(value);
        }
        let object = make_object(0, |header, _| BytesView {
            header,
            bytes: TVMFFIByteArray { data: bytes.as_ptr().cast(), size: bytes.len() },
            keep_alive,
        });
        Self(TVMFFIAny::from_ptr(TypeIndex::BYTES, object.as_ptr().cast()))
    }
}

impl Deref for Str {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl Hash for Str {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Hash for Bytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl Default for Str {
    fn default() -> Self {
        Self::new("")
    }
}

impl Default for Bytes {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.as_bytes().escape_ascii())
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self::new(bytes)
    }
}

impl PartialEq<str> for Str {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Str {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<[u8]> for Bytes {
    fn eq(&self, other: &[u8]) -> bool {
        self.as_bytes() == other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_bytes_are_small_and_eight_are_not() {
        assert!(Str::new("1234567").is_small());
        assert!(!Str::new("12345678").is_small());
        assert!(Bytes::new(&[0; 7]).is_small());
        assert!(!Bytes::new(&[0; 8]).is_small());
        for text in ["", "a", "1234567", "12345678", "a longer text, with spaces"] {
            assert_eq!(Str::new(text), text);
            assert_eq!(Str::new(text).clone().len(), text.len());
        }
    }

    #[test]
    fn heap_strings_end_with_nul() {
        let text = Str::new("12345678");
        // SAFETY: the byte array follows the header, and heap strings have a NUL after their last byte.
        let last = unsafe {
            let bytes = text.0.v.v_obj.add(1).cast::<TVMFFIByteArray>().read();
            *bytes.data.add(bytes.size)
        };
        assert_eq!(last, 0);
    }
}
