//! DLPack 1.3: tensors, managed tensors and the exchange table. Layouts and names are those of `dlpack.h`. Device types
//! are in `device.rs`. Names and sizes of data types are in `crate::dtype`.
#![allow(non_upper_case_globals)]

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

use super::device::{DLDevice, DLDeviceType};

/// Major version of the DLPack ABI implemented here.
pub const DLPACK_MAJOR_VERSION: u32 = 1;
/// Minor version of the DLPack ABI implemented here.
pub const DLPACK_MINOR_VERSION: u32 = 3;
/// Flag of a managed tensor: read only.
pub const DLPACK_FLAG_BITMASK_READ_ONLY: u64 = 1 << 0;
/// Flag of a managed tensor: a copy that belongs to the consumer alone.
pub const DLPACK_FLAG_BITMASK_IS_COPIED: u64 = 1 << 1;
/// Flag of a managed tensor: elements smaller than a byte are padded, not packed.
pub const DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED: u64 = 1 << 2;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        $($(#[$doc])* pub const $name: u8 = $value;)*
    };
}

codes! {
    /// Type code: signed integer.
    kDLInt = 0;
    /// Type code: unsigned integer.
    kDLUInt = 1;
    /// Type code: IEEE floating point.
    kDLFloat = 2;
    /// Type code: opaque handle.
    kDLOpaqueHandle = 3;
    /// Type code: bfloat16.
    kDLBfloat = 4;
    /// Type code: complex number.
    kDLComplex = 5;
    /// Type code: boolean.
    kDLBool = 6;
    /// Type code: FP8 E3M4.
    kDLFloat8_e3m4 = 7;
    /// Type code: FP8 E4M3.
    kDLFloat8_e4m3 = 8;
    /// Type code: FP8 E4M3 B11 FNUZ.
    kDLFloat8_e4m3b11fnuz = 9;
    /// Type code: FP8 E4M3 FN.
    kDLFloat8_e4m3fn = 10;
    /// Type code: FP8 E4M3 FNUZ.
    kDLFloat8_e4m3fnuz = 11;
    /// Type code: FP8 E5M2.
    kDLFloat8_e5m2 = 12;
    /// Type code: FP8 E5M2 FNUZ.
    kDLFloat8_e5m2fnuz = 13;
    /// Type code: FP8 E8M0 FNU.
    kDLFloat8_e8m0fnu = 14;
    /// Type code: FP6 E2M3 FN.
    kDLFloat6_e2m3fn = 15;
    /// Type code: FP6 E3M2 FN.
    kDLFloat6_e3m2fn = 16;
    /// Type code: FP4 E2M1 FN.
    kDLFloat4_e2m1fn = 17;
    /// First type code of custom types (`DLExtDataTypeCode`, dtype.h).
    kDLExtCustomBegin = 129;
}

/// Version of the DLPack ABI that a structure follows.
#[repr(C)]
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct DLPackVersion {
    /// Major version: a change breaks the layout.
    pub major: u32,
    /// Minor version: a change adds codes.
    pub minor: u32,
}

/// Element type of a tensor: type code, bits per lane, lanes.
#[repr(C)]
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct DLDataType {
    /// One of the `kDL...` type codes.
    pub code: u8,
    /// Bits per lane.
    pub bits: u8,
    /// Lanes of a vector type. Read as a signed number, a value below -1 means scalable vectors.
    pub lanes: u16,
}

/// A tensor that does not manage its memory.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct DLTensor {
    /// Address (or handle) of the memory; NULL for tensors without elements.
    pub data: *mut c_void,
    /// Device of the memory.
    pub device: DLDevice,
    /// Number of dimensions.
    pub ndim: i32,
    /// Element type.
    pub dtype: DLDataType,
    /// `ndim` extents; may be NULL when `ndim` is zero.
    pub shape: *mut i64,
    /// `ndim` strides in elements, not bytes; NULL (before DLPack 1.2) means contiguous.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// A tensor with its owner, as before DLPack 1.0.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// The owner's context.
    pub manager_ctx: *mut c_void,
    /// Frees the owner's context and this structure; may be NULL.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// A tensor with its owner, a version and flags, since DLPack 1.0.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct DLManagedTensorVersioned {
    /// The version that this structure follows.
    pub version: DLPackVersion,
    /// The owner's context.
    pub manager_ctx: *mut c_void,
    /// Frees the owner's context and this structure; may be NULL.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// `DLPACK_FLAG_BITMASK_...` flags.
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

/// Reports an error from a DLPack function: context, kind, message.
pub type DLPackSetError = unsafe extern "C" fn(error_ctx: *mut c_void, kind: *const c_char, message: *const c_char);

/// Allocates a tensor like the prototype. It reads the prototype's `dtype`, `ndim`, `shape` and `device`.
pub type DLPackManagedTensorAllocator = unsafe extern "C" fn(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    error_ctx: *mut c_void,
    set_error: Option<DLPackSetError>,
) -> c_int;

/// Exports a Python tensor without synchronising.
pub type DLPackManagedTensorFromPyObjectNoSync =
    unsafe extern "C" fn(py_object: *mut c_void, out: *mut *mut DLManagedTensorVersioned) -> c_int;

/// Exports a Python tensor into a `DLTensor` that the caller provides.
pub type DLPackDLTensorFromPyObjectNoSync = unsafe extern "C" fn(py_object: *mut c_void, out: *mut DLTensor) -> c_int;

/// Reads the current work stream of a device.
pub type DLPackCurrentWorkStream =
    unsafe extern "C" fn(device_type: DLDeviceType, device_id: i32, out_current_stream: *mut *mut c_void) -> c_int;

/// Imports a managed tensor as a Python tensor; ownership moves.
pub type DLPackManagedTensorToPyObjectNoSync =
    unsafe extern "C" fn(tensor: *mut DLManagedTensorVersioned, out_py_object: *mut *mut c_void) -> c_int;

/// The part of the exchange table that stays the same in every version.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct DLPackExchangeAPIHeader {
    /// Version of the table.
    pub version: DLPackVersion,
    /// An older table, or NULL.
    pub prev_api: *mut DLPackExchangeAPIHeader,
}

/// Table of functions that a framework offers for tensor exchange.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct DLPackExchangeAPI {
    /// The stable header.
    pub header: DLPackExchangeAPIHeader,
    /// Allocates a tensor.
    pub managed_tensor_allocator: Option<DLPackManagedTensorAllocator>,
    /// Exports a Python tensor.
    pub managed_tensor_from_py_object_no_sync: Option<DLPackManagedTensorFromPyObjectNoSync>,
    /// Imports a managed tensor.
    pub managed_tensor_to_py_object_no_sync: Option<DLPackManagedTensorToPyObjectNoSync>,
    /// Exports into a `DLTensor`; may be NULL.
    pub dltensor_from_py_object_no_sync: Option<DLPackDLTensorFromPyObjectNoSync>,
    /// Reads the current work stream.
    pub current_work_stream: Option<DLPackCurrentWorkStream>,
}

const _: () = assert!(size_of::<DLDataType>() == 4);
const _: () = assert!(size_of::<DLTensor>() == 48);
const _: () = assert!(offset_of!(DLTensor, device) == 8);
const _: () = assert!(offset_of!(DLTensor, ndim) == 16);
const _: () = assert!(offset_of!(DLTensor, dtype) == 20);
const _: () = assert!(offset_of!(DLTensor, shape) == 24);
const _: () = assert!(offset_of!(DLTensor, strides) == 32);
const _: () = assert!(offset_of!(DLTensor, byte_offset) == 40);
const _: () = assert!(size_of::<DLManagedTensor>() == 64);
const _: () = assert!(offset_of!(DLManagedTensor, manager_ctx) == 48);
const _: () = assert!(offset_of!(DLManagedTensor, deleter) == 56);
const _: () = assert!(size_of::<DLManagedTensorVersioned>() == 80);
const _: () = assert!(offset_of!(DLManagedTensorVersioned, manager_ctx) == 8);
const _: () = assert!(offset_of!(DLManagedTensorVersioned, deleter) == 16);
const _: () = assert!(offset_of!(DLManagedTensorVersioned, flags) == 24);
const _: () = assert!(offset_of!(DLManagedTensorVersioned, dl_tensor) == 32);
const _: () = assert!(size_of::<DLPackExchangeAPIHeader>() == 16);
const _: () = assert!(size_of::<DLPackExchangeAPI>() == 56);
const _: () = assert!(offset_of!(DLPackExchangeAPI, current_work_stream) == 48);
