//! Rust types that can be elements of tensors.
//! Each corresponds to one `DLDataType` of one lane and the same size.
//! Header: `DLDataType` in `dlpack.h`.

use crate::abi::DLDataType;

mod sealed {
    pub trait Sealed {}
}

/// A Rust type with the layout of a DLPack element type. You can't implement it for your own types.
pub trait Element: Copy + Send + Sync + sealed::Sealed + 'static {
    /// The element type.
    const DTYPE: DLDataType;

    /// True if bytes from foreign memory are valid values of this type.
    #[doc(hidden)]
    fn is_valid(_bytes: &[u8]) -> bool {
        true
    }
}

/// An element type for which every bit pattern is valid, so functions may write to a slice of it: all except `bool`.
///
/// ```compile_fail,E0277
/// let mut flags = [true, false];
/// let view = tvm_ffi_runtime::TensorView::from_mut_slice(&mut flags, &[2]);
/// ```
pub trait AnyBits: Element {}

macro_rules! elements {
    ($($ty:ty = $dtype:ident),*) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DLDataType = DLDataType::$dtype;
        }
        impl AnyBits for $ty {}
        const _: () = assert!(size_of::<$ty>() == DLDataType::$dtype.itemsize() && size_of::<$ty>() <= 8);
    )*};
}
elements!(
    i8 = INT8,
    i16 = INT16,
    i32 = INT32,
    i64 = INT64,
    u8 = UINT8,
    u16 = UINT16,
    u32 = UINT32,
    u64 = UINT64,
    f32 = FLOAT32,
    f64 = FLOAT64
);

#[cfg(feature = "half")]
elements!(half::f16 = FLOAT16, half::bf16 = BFLOAT16);

impl sealed::Sealed for bool {}
impl Element for bool {
    const DTYPE: DLDataType = DLDataType::BOOL;

    fn is_valid(bytes: &[u8]) -> bool {
        bytes.iter().all(|&byte| byte <= 1)
    }
}
