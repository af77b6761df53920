//! Elements of tensors in memory.

use std::fmt::Write;

use tvm_ffi_codegen::{DLDataType, ScalarType};

use super::half;
use super::value::Number;

/// The form of a number in fixtures.
pub trait Show: Copy {
    fn show(self) -> String;
}

fn half_type(dtype: DLDataType) -> Option<ScalarType> {
    match dtype {
        DLDataType::FLOAT16 => Some(ScalarType::Float16),
        DLDataType::BFLOAT16 => Some(ScalarType::BFloat16),
        _ => None,
    }
}

macro_rules! elements {
    ($($name:ident: $ty:ty;)*) => {
        /// The bytes of an element with this value.
        pub fn bytes(dtype: DLDataType, number: Number) -> Vec<u8> {
            if let Some(ty) = half_type(dtype) {
                let number = match number {
                    Number::Int(v) => v as f64,
                    Number::Float(v) => v,
                };
                return half::nearest(ty, number).to_le_bytes().to_vec();
            }
            match ScalarType::of_dtype(dtype) {
                $(Some(ScalarType::$name) => match number {
                    Number::Int(v) => (v as $ty).to_le_bytes().to_vec(),
                    Number::Float(v) => (v as $ty).to_le_bytes().to_vec(),
                },)*
                _ => match number {
                    Number::Int(v) => v.to_le_bytes().into_iter().cycle().take(dtype.itemsize()).collect(),
                    Number::Float(v) => v.to_le_bytes().into_iter().cycle().take(dtype.itemsize()).collect(),
                },
            }
        }

        /// An element in printed form: a number, or its bytes if bodies have no type for it.
        pub fn show(dtype: DLDataType, bytes: &[u8]) -> String {
            if let Some(ty) = half_type(dtype) {
                // each value is one of `float`, with few digits
                return (half::value(ty, u16::from_le_bytes(bytes.try_into().unwrap())) as f32).show();
            }
            match ScalarType::of_dtype(dtype) {
                $(Some(ScalarType::$name) => <$ty>::from_le_bytes(bytes.try_into().unwrap()).show(),)*
                Some(ScalarType::Bool) => match bytes[0] {
                    0 => "false".to_owned(),
                    1 => "true".to_owned(),
                    other => format!("bool {other}"),
                },
                // an element may have thousands of lanes
                _ => bytes.iter().fold("0x".to_owned(), |mut text, byte| {
                    let _ = write!(text, "{byte:02x}");
                    text
                }),
            }
        }
    };
}
elements! {
    Int8: i8;
    Int16: i16;
    Int32: i32;
    Int64: i64;
    UInt8: u8;
    UInt16: u16;
    UInt32: u32;
    UInt64: u64;
    Float32: f32;
    Float64: f64;
}

macro_rules! show_ints {
    ($($ty:ty)*) => {$(
        impl Show for $ty {
            fn show(self) -> String {
                self.to_string()
            }
        }
    )*};
}
show_ints! { bool i8 i16 i32 i64 u8 u16 u32 u64 }

macro_rules! show_floats {
    ($($ty:ty)*) => {$(
        impl Show for $ty {
            fn show(self) -> String {
                let size = self.abs();
                let plain = size == 0.0 || !size.is_finite() || (1e-5..1e16).contains(&size);
                if plain { self.to_string() } else { format!("{self:e}") }
            }
        }
    )*};
}
show_floats! { f32 f64 }
