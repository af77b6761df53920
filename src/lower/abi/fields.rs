//! Small fields that are loaded, compared and written together, as one integer. The byte order of the module's target
//! determines the bits of each field. Only this file implements that.

use crate::ir::{BinaryOp, ConvertOp, FunctionBuilder, Type, Value};
use target_lexicon::Endianness;
use tvm_ffi_runtime::abi::DLDataType;

/// Two adjacent 32-bit fields as a 64-bit load returns them. `first` is at the lower address.
pub(in crate::lower) fn pair(order: Endianness, first: u32, second: u32) -> i64 {
    let (low, high) = match order {
        Endianness::Little => (first, second),
        Endianness::Big => (second, first),
    };
    (u64::from(low) | u64::from(high) << 32) as i64
}

/// The first field of a [`pair`], an `I32`.
pub(in crate::lower) fn first(b: &mut FunctionBuilder<'_>, pair: Value) -> Value {
    half(b, pair, Endianness::Little)
}

/// The second field of a [`pair`], an `I32`.
pub(in crate::lower) fn second(b: &mut FunctionBuilder<'_>, pair: Value) -> Value {
    half(b, pair, Endianness::Big)
}

/// The field that is in the lower half of a pair on targets of byte order `order`.
fn half(b: &mut FunctionBuilder<'_>, pair: Value, order: Endianness) -> Value {
    let low = match b.module().endianness == order {
        true => pair,
        false => {
            let shift = b.i64(32);
            b.binary(BinaryOp::LShr, pair, shift)
        }
    };
    b.convert(ConvertOp::Truncate, Type::I32, low)
}

/// The [`pair`] of a field and zeros. The field may be an `I64`; only its lower 32 bits are used.
pub(in crate::lower) fn before_zeros(b: &mut FunctionBuilder<'_>, first: Value) -> Value {
    let narrow = b.type_of(first) == Type::I32;
    match b.module().endianness {
        Endianness::Little if narrow => b.convert(ConvertOp::ZExt, Type::I64, first),
        Endianness::Little => {
            let mask = b.i64(0xffff_ffff);
            b.binary(BinaryOp::And, first, mask)
        }
        Endianness::Big => {
            let wide = if narrow { b.convert(ConvertOp::ZExt, Type::I64, first) } else { first };
            let shift = b.i64(32);
            b.binary(BinaryOp::Shl, wide, shift)
        }
    }
}

/// A field of a `DLDataType`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) enum DTypeField {
    Code,
    Bits,
    Lanes,
}

impl DTypeField {
    /// Its lowest bit in a 32-bit load of the `DLDataType`.
    pub(in crate::lower) fn shift(self, order: Endianness) -> u32 {
        match (order, self) {
            (Endianness::Little, DTypeField::Code) => 0,
            (Endianness::Little, DTypeField::Bits) => 8,
            (Endianness::Little, DTypeField::Lanes) => 16,
            (Endianness::Big, DTypeField::Code) => 24,
            (Endianness::Big, DTypeField::Bits) => 16,
            (Endianness::Big, DTypeField::Lanes) => 0,
        }
    }

    fn ty(self) -> Type {
        match self {
            DTypeField::Code | DTypeField::Bits => Type::I8,
            DTypeField::Lanes => Type::I16,
        }
    }

    /// The field's value, from a `DLDataType` in the lower 32 bits of an `I64`.
    pub(in crate::lower) fn of(self, b: &mut FunctionBuilder<'_>, dtype: Value) -> Value {
        let order = b.module().endianness;
        let shifted = match self.shift(order) {
            0 => dtype,
            shift => {
                let shift = b.i64(i64::from(shift));
                b.binary(BinaryOp::LShr, dtype, shift)
            }
        };
        let field = b.convert(ConvertOp::Truncate, self.ty(), shifted);
        b.convert(ConvertOp::ZExt, Type::I64, field)
    }
}

/// A `DLDataType` as a 32-bit load returns it.
pub(in crate::lower) fn dtype_word(order: Endianness, dtype: DLDataType) -> u32 {
    u32::from(dtype.code) << DTypeField::Code.shift(order)
        | u32::from(dtype.bits) << DTypeField::Bits.shift(order)
        | u32::from(dtype.lanes) << DTypeField::Lanes.shift(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes in memory order, loaded in each byte order.
    #[test]
    fn fields_are_where_memory_has_them() {
        let dtype = DLDataType { code: 2, bits: 32, lanes: 0x0104 };
        for (order, u16s, u32s, u64s) in [
            (
                Endianness::Little,
                u16::to_le_bytes as fn(u16) -> [u8; 2],
                u32::from_le_bytes as fn([u8; 4]) -> u32,
                u64::from_le_bytes as fn([u8; 8]) -> u64,
            ),
            (Endianness::Big, u16::to_be_bytes, u32::from_be_bytes, u64::from_be_bytes),
        ] {
            let [low, high] = u16s(dtype.lanes);
            assert_eq!(dtype_word(order, dtype), u32s([2, 32, low, high]));
            let (first, second) = (u32s([1, 2, 3, 4]), u32s([5, 6, 7, 0x88]));
            assert_eq!(pair(order, first, second) as u64, u64s([1, 2, 3, 4, 5, 6, 7, 0x88]));
        }
    }
}
