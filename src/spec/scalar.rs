//! Scalar types.

use std::fmt;

use tvm_ffi_runtime::abi::DLDataType;

/// The type of a scalar parameter or result, with the text form's name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
#[allow(missing_docs)] // the names are the field's own
pub enum ScalarType {
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    /// A 16-bit IEEE 754 number. A kernel gets its bits.
    Float16,
    /// The upper 16 bits of a `float32`. A kernel gets the bits.
    BFloat16,
    Float32,
    Float64,
    Bool,
    /// An opaque pointer (`void*`). None is passed as NULL.
    Handle,
}

impl ScalarType {
    /// Every scalar type.
    pub const ALL: &'static [ScalarType] = &[
        ScalarType::Int8,
        ScalarType::Int16,
        ScalarType::Int32,
        ScalarType::Int64,
        ScalarType::UInt8,
        ScalarType::UInt16,
        ScalarType::UInt32,
        ScalarType::UInt64,
        ScalarType::Float16,
        ScalarType::BFloat16,
        ScalarType::Float32,
        ScalarType::Float64,
        ScalarType::Bool,
        ScalarType::Handle,
    ];

    /// The type's name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            ScalarType::Int8 => "int8",
            ScalarType::Int16 => "int16",
            ScalarType::Int32 => "int32",
            ScalarType::Int64 => "int64",
            ScalarType::UInt8 => "uint8",
            ScalarType::UInt16 => "uint16",
            ScalarType::UInt32 => "uint32",
            ScalarType::UInt64 => "uint64",
            ScalarType::Float16 => "float16",
            ScalarType::BFloat16 => "bfloat16",
            ScalarType::Float32 => "float32",
            ScalarType::Float64 => "float64",
            ScalarType::Bool => "bool",
            ScalarType::Handle => "handle",
        }
    }

    /// Whether values are signed integers.
    pub const fn is_signed_int(self) -> bool {
        matches!(self, ScalarType::Int8 | ScalarType::Int16 | ScalarType::Int32 | ScalarType::Int64)
    }

    /// Whether values are unsigned integers; `bool` doesn't count.
    pub const fn is_unsigned_int(self) -> bool {
        matches!(self, ScalarType::UInt8 | ScalarType::UInt16 | ScalarType::UInt32 | ScalarType::UInt64)
    }

    /// Whether values are integers, signed or not.
    pub const fn is_int(self) -> bool {
        self.is_signed_int() || self.is_unsigned_int()
    }

    /// Whether values are floating-point numbers.
    pub const fn is_float(self) -> bool {
        matches!(self, ScalarType::Float32 | ScalarType::Float64) || self.is_half()
    }

    /// Whether the type is `float16` or `bfloat16`, whose values are passed as bits.
    pub const fn is_half(self) -> bool {
        matches!(self, ScalarType::Float16 | ScalarType::BFloat16)
    }

    /// The width of a value in bits, as a C compiler stores it.
    pub const fn bits(self) -> u32 {
        match self {
            ScalarType::Int8 | ScalarType::UInt8 | ScalarType::Bool => 8,
            ScalarType::Int16 | ScalarType::UInt16 | ScalarType::Float16 | ScalarType::BFloat16 => 16,
            ScalarType::Int32 | ScalarType::UInt32 | ScalarType::Float32 => 32,
            ScalarType::Int64 | ScalarType::UInt64 | ScalarType::Float64 | ScalarType::Handle => 64,
        }
    }

    /// The minimum and maximum of an integer type of less than 64 bits; `None` for other types.
    pub const fn narrow_range(self) -> Option<(i64, i64)> {
        match self.bits() {
            64.. => None,
            bits if self.is_signed_int() => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
            bits if self.is_unsigned_int() => Some((0, (1 << bits) - 1)),
            _ => None,
        }
    }

    /// The scalar type for one element of `dtype`, if there is one.
    pub fn of_dtype(dtype: DLDataType) -> Option<ScalarType> {
        Self::named_as(dtype).filter(|ty| !ty.is_half() && *ty != ScalarType::Handle)
    }

    /// The scalar type with the name of `dtype`.
    pub(super) fn named_as(dtype: DLDataType) -> Option<ScalarType> {
        DTYPES.into_iter().find(|(known, _)| *known == dtype).map(|(_, ty)| ty)
    }
}

/// The dtypes that have a scalar type of the same name.
const DTYPES: [(DLDataType, ScalarType); 14] = [
    (DLDataType::INT8, ScalarType::Int8),
    (DLDataType::INT16, ScalarType::Int16),
    (DLDataType::INT32, ScalarType::Int32),
    (DLDataType::INT64, ScalarType::Int64),
    (DLDataType::UINT8, ScalarType::UInt8),
    (DLDataType::UINT16, ScalarType::UInt16),
    (DLDataType::UINT32, ScalarType::UInt32),
    (DLDataType::UINT64, ScalarType::UInt64),
    (DLDataType::FLOAT16, ScalarType::Float16),
    (DLDataType::BFLOAT16, ScalarType::BFloat16),
    (DLDataType::FLOAT32, ScalarType::Float32),
    (DLDataType::FLOAT64, ScalarType::Float64),
    (DLDataType::BOOL, ScalarType::Bool),
    (DLDataType::HANDLE, ScalarType::Handle),
];

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
