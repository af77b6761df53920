//! Values at run time.

use crate::ir::types::Type;

/// A value at run time. Integers are unsigned, as in the IR: `-1i32` is `Datum::I32(u32::MAX)`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Datum {
    /// A truth value. It can't be an argument or a result, since signatures don't allow it.
    Bool(bool),
    /// An 8-bit integer.
    I8(u8),
    /// A 16-bit integer.
    I16(u16),
    /// A 32-bit integer.
    I32(u32),
    /// A 64-bit integer.
    I64(u64),
    /// A float.
    F32(f32),
    /// A float.
    F64(f64),
    /// An address in this process.
    Ptr(u64),
}

impl Datum {
    /// The type.
    pub const fn ty(self) -> Type {
        match self {
            Datum::Bool(_) => Type::Bool,
            Datum::I8(_) => Type::I8,
            Datum::I16(_) => Type::I16,
            Datum::I32(_) => Type::I32,
            Datum::I64(_) => Type::I64,
            Datum::F32(_) => Type::F32,
            Datum::F64(_) => Type::F64,
            Datum::Ptr(_) => Type::Ptr,
        }
    }

    /// The bits, zero-extended. Unlike `==` they distinguish zeros and NaNs.
    pub const fn bits(self) -> u64 {
        match self {
            Datum::Bool(value) => value as u64,
            Datum::I8(value) => value as u64,
            Datum::I16(value) => value as u64,
            Datum::I32(value) => value as u64,
            Datum::I64(value) | Datum::Ptr(value) => value,
            Datum::F32(value) => value.to_bits() as u64,
            Datum::F64(value) => value.to_bits(),
        }
    }

    /// The value of a type with the given bits. Bits above the type's width are dropped.
    pub const fn from_bits(ty: Type, bits: u64) -> Self {
        match ty {
            Type::Bool => Datum::Bool(bits & 1 != 0),
            Type::I8 => Datum::I8(bits as u8),
            Type::I16 => Datum::I16(bits as u16),
            Type::I32 => Datum::I32(bits as u32),
            Type::I64 => Datum::I64(bits),
            Type::F32 => Datum::F32(f32::from_bits(bits as u32)),
            Type::F64 => Datum::F64(f64::from_bits(bits)),
            Type::Ptr => Datum::Ptr(bits),
        }
    }
}
