//! The 16-byte tagged value that carries every argument and result.
//! Also the byte array and the version triple of `c_api.h`.
//! Header sections: `TVMFFIAny`, `TVMFFIByteArray`, `TVMFFIVersion`.

use std::ffi::{c_char, c_void};
use std::fmt;
use std::mem::offset_of;

use super::device::DLDevice;
use super::dlpack::DLDataType;
use super::object::TVMFFIObject;
use super::type_index::TypeIndex;

/// Version of the C ABI (`TVMFFIVersion`).
#[repr(C)]
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TVMFFIVersion {
    /// Major version.
    pub major: u32,
    /// Minor version.
    pub minor: u32,
    /// Patch version.
    pub patch: u32,
}

impl fmt::Display for TVMFFIVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A pointer and a length in bytes (`TVMFFIByteArray`).
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct TVMFFIByteArray {
    /// First byte; may be NULL when `size` is zero.
    pub data: *const c_char,
    /// Number of bytes.
    pub size: usize,
}

impl TVMFFIByteArray {
    /// The empty array: NULL and zero.
    pub const EMPTY: Self = Self { data: std::ptr::null(), size: 0 };

    /// Points at `bytes`. The caller keeps them alive while the result is read.
    #[inline]
    pub const fn from_slice(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr().cast(), size: bytes.len() }
    }

    /// The bytes this array points at; empty when `data` is NULL.
    ///
    /// # Safety
    /// A non-NULL `data` must point at `size` readable bytes that live and stay unchanged for `'a`.
    #[inline]
    pub unsafe fn as_slice<'a>(&self) -> &'a [u8] {
        if self.data.is_null() {
            return &[];
        }
        // SAFETY: the caller promises `size` readable bytes at `data` for `'a`.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.size) }
    }
}

/// The 8-byte payload of [`TVMFFIAny`]. The `type_index` decides which field is live.
#[repr(C)]
#[derive(Copy, Clone)]
pub union TVMFFIAnyValue {
    /// Integers and booleans.
    pub v_int64: i64,
    /// Floating-point numbers.
    pub v_float64: f64,
    /// Pointers without a type.
    pub v_ptr: *mut c_void,
    /// A NUL-terminated string that is not owned.
    pub v_c_str: *const c_char,
    /// A reference-counted object.
    pub v_obj: *mut TVMFFIObject,
    /// A data type.
    pub v_dtype: DLDataType,
    /// A device.
    pub v_device: DLDevice,
    /// Up to seven bytes of a small string, zero-filled.
    pub v_bytes: [u8; 8],
    /// All eight bytes as one number.
    pub v_uint64: u64,
}

impl fmt::Debug for TVMFFIAnyValue {
    /// Prints no field, because only the value's type index says which one is live.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TVMFFIAnyValue").finish_non_exhaustive()
    }
}

/// A value on the stack: type index, padding (or small-string length), payload (`TVMFFIAny`).
#[repr(C)]
#[derive(Copy, Clone)]
pub struct TVMFFIAny {
    /// The type of the value; see [`TypeIndex`].
    pub type_index: i32,
    /// Zero, or the length in bytes (0..=7) of a small string. C also names it `small_str_len`.
    pub zero_padding: u32,
    /// The payload.
    pub v: TVMFFIAnyValue,
}

impl TVMFFIAny {
    /// The value None: all sixteen bytes zero.
    #[inline]
    pub const fn none() -> Self {
        Self { type_index: TypeIndex::NONE.0, zero_padding: 0, v: TVMFFIAnyValue { v_uint64: 0 } }
    }

    /// A value of `type_index` whose whole payload is `bits`, with zero padding.
    #[inline]
    pub const fn from_bits(type_index: TypeIndex, bits: u64) -> Self {
        Self { type_index: type_index.0, zero_padding: 0, v: TVMFFIAnyValue { v_uint64: bits } }
    }

    /// A value of `type_index` that holds a pointer, with zero padding.
    #[inline]
    pub const fn from_ptr(type_index: TypeIndex, ptr: *mut c_void) -> Self {
        Self { type_index: type_index.0, zero_padding: 0, v: TVMFFIAnyValue { v_ptr: ptr } }
    }

    /// Reads a value that may have been written just before.
    ///
    /// Such a value was written in parts. A processor can forward one pending store to a read of the same part. A wider
    /// read, such as the usual 16-byte copy, waits until the parts are in the cache: about ten nanoseconds.
    ///
    /// # Safety
    /// `place` must be readable, and hold a value.
    #[inline]
    pub(crate) unsafe fn read_parts(place: *const Self) -> Self {
        // SAFETY: promised by the caller. The reads are volatile to keep the compiler from merging them into one.
        unsafe {
            Self {
                type_index: (&raw const (*place).type_index).read_volatile(),
                zero_padding: (&raw const (*place).zero_padding).read_volatile(),
                v: TVMFFIAnyValue { v_ptr: (&raw const (*place).v.v_ptr).read_volatile() },
            }
        }
    }

    /// The payload's eight bytes as a number.
    #[inline]
    pub const fn bits(&self) -> u64 {
        // SAFETY: this crate's constructors and the header's invariant initialise all eight payload bytes. Every bit
        // pattern is a valid u64.
        unsafe { self.v.v_uint64 }
    }

    /// The payload as a pointer.
    #[inline]
    pub const fn ptr(&self) -> *mut c_void {
        // SAFETY: all eight payload bytes are initialised (see `bits`), and any bits are a valid raw pointer value.
        unsafe { self.v.v_ptr }
    }
}

impl Default for TVMFFIAny {
    fn default() -> Self {
        Self::none()
    }
}

impl std::fmt::Debug for TVMFFIAny {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TVMFFIAny")
            .field("type_index", &TypeIndex(self.type_index))
            .field("zero_padding", &self.zero_padding)
            .field("bits", &format_args!("{:#x}", self.bits()))
            .finish()
    }
}

const _: () = assert!(size_of::<TVMFFIVersion>() == 12);
const _: () = assert!(size_of::<TVMFFIByteArray>() == 16);
const _: () = assert!(offset_of!(TVMFFIByteArray, size) == 8);
const _: () = assert!(size_of::<TVMFFIAnyValue>() == 8);
const _: () = assert!(size_of::<TVMFFIAny>() == 16);
const _: () = assert!(align_of::<TVMFFIAny>() == 8);
const _: () = assert!(offset_of!(TVMFFIAny, type_index) == 0);
const _: () = assert!(offset_of!(TVMFFIAny, zero_padding) == 4);
const _: () = assert!(offset_of!(TVMFFIAny, v) == 8);
