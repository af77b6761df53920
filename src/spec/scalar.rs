//! Scalar types.

use std::fmt;

use tvm_ffi_runtime::abi::DLDataType;

/// The kind of a scalar type's values. Code that depends on it matches all kinds without `_`. So the compiler shows
/// each place that a new kind concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScalarKind {
    /// A signed integer, of 8 to 64 bits.
    Signed,
    /// An unsigned integer, of 8 to 64 bits.
    Unsigned,
    /// A float of 16 bits, which is passed as bits.
    Half(Half),
    Float32,
    Float64,
    Bool,
    /// An opaque pointer.
    Handle,
}

/// A floating-point format of 16 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Half {
    Float16,
    BFloat16,
}

/// Defines the types, each with its name in the text form, the dtype of that name, and its kind.
macro_rules! scalar_types {
    ($($(#[$doc:meta])* $variant:ident $name:literal $dtype:ident $kind:ident $(($half:ident))?;)*) => {
        /// The type of a scalar parameter or result, with the text form's name.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        #[allow(missing_docs)] // the names are the field's own
        pub enum ScalarType {
            $($(#[$doc])* $variant,)*
        }

        impl ScalarType {
            /// Every scalar type.
            pub const ALL: &'static [ScalarType] = &[$(ScalarType::$variant),*];

            /// The type's name in the text form.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ScalarType::$variant => $name,)*
                }
            }

            /// The dtype of the same name.
            const fn dtype(self) -> DLDataType {
                match self {
                    $(ScalarType::$variant => DLDataType::$dtype,)*
                }
            }

            pub(crate) const fn kind(self) -> ScalarKind {
                match self {
                    $(ScalarType::$variant => ScalarKind::$kind $((Half::$half))?,)*
                }
            }
        }
    };
}

scalar_types! {
    Int8 "int8" INT8 Signed;
    Int16 "int16" INT16 Signed;
    Int32 "int32" INT32 Signed;
    Int64 "int64" INT64 Signed;
    UInt8 "uint8" UINT8 Unsigned;
    UInt16 "uint16" UINT16 Unsigned;
    UInt32 "uint32" UINT32 Unsigned;
    UInt64 "uint64" UINT64 Unsigned;
    /// A 16-bit IEEE 754 number. A kernel gets its bits.
    Float16 "float16" FLOAT16 Half(Float16);
    /// The upper 16 bits of a `float32`. A kernel gets the bits.
    BFloat16 "bfloat16" BFLOAT16 Half(BFloat16);
    Float32 "float32" FLOAT32 Float32;
    Float64 "float64" FLOAT64 Float64;
    Bool "bool" BOOL Bool;
    /// An opaque pointer (`void*`). None is passed as NULL.
    Handle "handle" HANDLE Handle;
}

impl ScalarType {
    /// Whether values are signed integers.
    pub const fn is_signed_int(self) -> bool {
        use ScalarKind::{Bool, Float32, Float64, Half, Handle, Signed, Unsigned};
        match self.kind() {
            Signed => true,
            Unsigned | Half(_) | Float32 | Float64 | Bool | Handle => false,
        }
    }

    /// Whether values are unsigned integers; `bool` doesn't count.
    pub const fn is_unsigned_int(self) -> bool {
        use ScalarKind::{Bool, Float32, Float64, Half, Handle, Signed, Unsigned};
        match self.kind() {
            Unsigned => true,
            Signed | Half(_) | Float32 | Float64 | Bool | Handle => false,
        }
    }

    /// Whether values are integers, signed or not.
    pub const fn is_int(self) -> bool {
        self.is_signed_int() || self.is_unsigned_int()
    }

    /// Whether values are floating-point numbers.
    pub const fn is_float(self) -> bool {
        use ScalarKind::{Bool, Float32, Float64, Half, Handle, Signed, Unsigned};
        match self.kind() {
            Half(_) | Float32 | Float64 => true,
            Signed | Unsigned | Bool | Handle => false,
        }
    }

    /// Whether the type is `float16` or `bfloat16`, whose values are passed as bits.
    pub const fn is_half(self) -> bool {
        use ScalarKind::{Bool, Float32, Float64, Half, Handle, Signed, Unsigned};
        match self.kind() {
            Half(_) => true,
            Signed | Unsigned | Float32 | Float64 | Bool | Handle => false,
        }
    }

    /// The width of a value in bits, as a C compiler stores it.
    pub const fn bits(self) -> u32 {
        self.dtype().bits as u32
    }

    /// The minimum and maximum of an integer type of less than 64 bits; `None` for other types.
    pub const fn narrow_range(self) -> Option<(i64, i64)> {
        match self.bits() {
            64.. => None,
            bits => match self.kind() {
                ScalarKind::Signed => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
                ScalarKind::Unsigned => Some((0, (1 << bits) - 1)),
                ScalarKind::Half(_)
                | ScalarKind::Float32
                | ScalarKind::Float64
                | ScalarKind::Bool
                | ScalarKind::Handle => None,
            },
        }
    }

    /// The scalar type for one element of `dtype`, if there is one.
    pub fn of_dtype(dtype: DLDataType) -> Option<ScalarType> {
        Self::named_as(dtype).filter(|ty| !ty.is_half() && *ty != ScalarType::Handle)
    }

    /// The type of one element of `dtype`, also of a half type.
    pub(crate) fn of_element(dtype: DLDataType) -> Option<ScalarType> {
        Self::named_as(dtype).filter(|ty| *ty != ScalarType::Handle)
    }

    /// The scalar type with the name of `dtype`.
    pub(super) fn named_as(dtype: DLDataType) -> Option<ScalarType> {
        Self::ALL.iter().copied().find(|ty| ty.dtype() == dtype)
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
