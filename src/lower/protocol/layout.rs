//! The memory layout of descriptors. The encoder writes a `#[repr(C)]` struct field by field, in the byte order of the
//! module's target. Generated code loads a field with the struct's offset and type for it.

use crate::ir::Type;
use target_lexicon::Endianness;
use tvm_ffi_runtime::abi::DLDataType;

/// A part of a descriptor. Its size is the same on every target.
pub(in crate::lower) trait Encode: Copy {
    /// Its size in bytes.
    const SIZE: usize;

    /// Appends its bytes.
    fn write(&self, order: Endianness, bytes: &mut Vec<u8>);

    /// Reads it from the start of `bytes`; `None` if they are too few.
    fn read(order: Endianness, bytes: &[u8]) -> Option<Self>;
}

/// A whole descriptor.
pub(in crate::lower) trait Descriptor: Encode {
    /// The struct's name, for the error about a missing descriptor.
    const NAME: &'static str;
    /// The name, offset and size of each field.
    #[cfg(test)]
    const FIELDS: &'static [(&'static str, usize, usize)];
}

/// A part of a descriptor that generated code loads as one integer.
pub(in crate::lower) trait Scalar: Encode {
    /// The type of the load.
    const TYPE: Type;
    /// Whether loads sign-extend it to a wider integer.
    const SIGNED: bool;
}

macro_rules! integers {
    ($($int:ident: $ty:ident, $signed:literal;)*) => {$(
        impl Encode for $int {
            const SIZE: usize = size_of::<$int>();

            fn write(&self, order: Endianness, bytes: &mut Vec<u8>) {
                bytes.extend(match order {
                    Endianness::Little => self.to_le_bytes(),
                    Endianness::Big => self.to_be_bytes(),
                });
            }

            fn read(order: Endianness, bytes: &[u8]) -> Option<Self> {
                let bytes = *bytes.first_chunk()?;
                Some(match order {
                    Endianness::Little => $int::from_le_bytes(bytes),
                    Endianness::Big => $int::from_be_bytes(bytes),
                })
            }
        }

        impl Scalar for $int {
            const TYPE: Type = Type::$ty;
            const SIGNED: bool = $signed;
        }
    )*};
}

integers! {
    u8: I8, false;
    i8: I8, true;
    u16: I16, false;
    u32: I32, false;
    i32: I32, true;
}

/// Padding.
impl<const N: usize> Encode for [u8; N] {
    const SIZE: usize = N;

    fn write(&self, _: Endianness, bytes: &mut Vec<u8>) {
        bytes.extend(self);
    }

    fn read(_: Endianness, bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().copied()
    }
}

impl Encode for DLDataType {
    const SIZE: usize = size_of::<Self>();

    fn write(&self, order: Endianness, bytes: &mut Vec<u8>) {
        self.code.write(order, bytes);
        self.bits.write(order, bytes);
        self.lanes.write(order, bytes);
    }

    fn read(order: Endianness, bytes: &[u8]) -> Option<Self> {
        let [code, bits, rest @ ..] = bytes else { return None };
        Some(DLDataType { code: *code, bits: *bits, lanes: u16::read(order, rest)? })
    }
}

impl Scalar for DLDataType {
    const TYPE: Type = Type::I32;
    const SIGNED: bool = false;
}

/// A field of a descriptor: its offset from the descriptor's address, and the type of a load. Create it with
/// [`field!`].
#[derive(Clone, Copy, Debug)]
pub(in crate::lower) struct DescriptorField {
    pub offset: i32,
    pub ty: Type,
    pub signed: bool,
}

impl DescriptorField {
    /// The field at an offset of `D`. The function determines the field's type.
    pub(in crate::lower) const fn new<D, T: Scalar>(offset: usize, _: fn(&D) -> T) -> Self {
        DescriptorField { offset: offset as i32, ty: T::TYPE, signed: T::SIGNED }
    }

    /// The same field, relative to the end of a `D` instead of its start.
    pub(in crate::lower) const fn of_ending<D: Descriptor>(self) -> Self {
        DescriptorField { offset: self.offset - D::SIZE as i32, ..self }
    }

    /// The same field, of a struct that follows a `D`; relative to the start of the `D`.
    pub(in crate::lower) const fn behind<D: Descriptor>(self) -> Self {
        DescriptorField { offset: self.offset + D::SIZE as i32, ..self }
    }
}

/// The [`DescriptorField`] of a struct: `field!(TensorDescriptor, rank)`.
macro_rules! field {
    ($descriptor:ident, $($field:ident).+) => {
        const {
            $crate::lower::protocol::layout::DescriptorField::new(
                std::mem::offset_of!($descriptor, $($field).+),
                |descriptor: &$descriptor| descriptor.$($field).+,
            )
        }
    };
}
pub(in crate::lower) use field;

/// The offset of a struct's field, or the size of the struct, in the type that IR takes.
macro_rules! offset {
    ($layout:ident, $($field:ident).+) => {
        const { std::mem::offset_of!($layout, $($field).+) as i32 }
    };
}
pub(in crate::lower) use offset;

/// Declares descriptors. Their fields leave no padding, so writing one field after the other writes the struct.
macro_rules! descriptors {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $ty:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(C)]
        pub(in crate::lower) struct $name {
            $($(#[$field_doc])* pub $field: $ty,)*
        }

        const _: () = assert!(0 $(+ <$ty as Encode>::SIZE)* == size_of::<$name>(), "a descriptor has no padding");
        const _: () = assert!(align_of::<$name>() <= POOL_ALIGN, "the pool aligns descriptors to words");

        impl Encode for $name {
            const SIZE: usize = size_of::<Self>();

            fn write(&self, order: Endianness, bytes: &mut Vec<u8>) {
                $(self.$field.write(order, bytes);)*
            }

            fn read(order: Endianness, bytes: &[u8]) -> Option<Self> {
                Some($name { $($field: Encode::read(order, bytes.get(std::mem::offset_of!(Self, $field)..)?)?,)* })
            }
        }

        impl Descriptor for $name {
            const NAME: &'static str = stringify!($name);
            #[cfg(test)]
            const FIELDS: &'static [(&'static str, usize, usize)] =
                &[$((stringify!($field), std::mem::offset_of!($name, $field), size_of::<$ty>())),*];
        }
    )*};
}
pub(super) use descriptors;

/// Alignment of descriptors in the pool.
pub(in crate::lower) const POOL_ALIGN: usize = 4;

/// Descriptors in a pool.
#[derive(Clone, Copy)]
pub(in crate::lower) struct Descriptors<'a> {
    pub bytes: &'a [u8],
    pub order: Endianness,
}

impl Descriptors<'_> {
    /// The descriptor at an offset.
    ///
    /// # Errors
    /// The pool is too short; the message says which descriptor is missing.
    pub(in crate::lower) fn read<D: Descriptor>(&self, offset: u32) -> Result<D, String> {
        let bytes = self.bytes.get(offset as usize..);
        let missing = || format!("the {} at byte {offset} of the constant pool", D::NAME);
        bytes.and_then(|bytes| D::read(self.order, bytes)).ok_or_else(missing)
    }

    /// The descriptor that ends at an offset.
    ///
    /// # Errors
    /// The same as for [`read`](Self::read).
    pub(in crate::lower) fn read_before<D: Descriptor>(&self, offset: u32) -> Result<D, String> {
        let start = offset.checked_sub(D::SIZE as u32);
        self.read(start.ok_or_else(|| format!("the {} before byte {offset} of the constant pool", D::NAME))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::protocol::{SignatureDescriptor, TensorDescriptor, TypeKind};

    const TENSOR: TensorDescriptor = TensorDescriptor {
        kind: TypeKind::Tensor as u8,
        flags: 2,
        rank: -1,
        device_type: 3,
        expected: 0x0102_0304,
        dtype: DLDataType { code: 2, bits: 32, lanes: 0x0104 },
        dtype_text: 5,
        dtype_codes: 6,
        device_id: -2,
        device_text: 7,
        align: 8,
    };

    /// Each field is at its `offset_of`, in the target's byte order.
    #[test]
    fn fields_are_written_by_their_own_width() {
        for (order, lanes, expected) in
            [(Endianness::Little, [4, 1], [4, 3, 2, 1]), (Endianness::Big, [1, 4], [1, 2, 3, 4])]
        {
            let mut bytes = Vec::new();
            TENSOR.write(order, &mut bytes);
            assert_eq!(bytes.len(), TensorDescriptor::SIZE);
            assert_eq!(bytes[field!(TensorDescriptor, rank).offset as usize], 0xff);
            assert_eq!(bytes[field!(TensorDescriptor, device_type).offset as usize], 3);
            assert_eq!(bytes[field!(TensorDescriptor, expected).offset as usize..][..4], expected);
            let dtype = field!(TensorDescriptor, dtype).offset as usize;
            assert_eq!(bytes[dtype..][..2], [2, 32]);
            assert_eq!(bytes[dtype + 2..][..2], lanes);
            assert_eq!(TensorDescriptor::read(order, &bytes), Some(TENSOR));
        }
    }

    /// Loads have the width and the sign of the field.
    #[test]
    fn a_field_knows_its_type() {
        let rank = field!(TensorDescriptor, rank);
        assert_eq!((rank.offset, rank.ty, rank.signed), (2, Type::I8, true));
        let id = field!(TensorDescriptor, device_id);
        assert_eq!((id.offset, id.ty, id.signed), (20, Type::I32, true));
        let min = field!(SignatureDescriptor, min);
        assert_eq!((min.offset, min.ty, min.signed), (2, Type::I16, false));
        assert_eq!(min.of_ending::<SignatureDescriptor>().offset, 2 - SignatureDescriptor::SIZE as i32);
    }

    /// The error about a descriptor after the pool's end names it.
    #[test]
    fn a_descriptor_that_is_cut_short_is_missing() {
        let mut bytes = vec![0; 8];
        TENSOR.write(Endianness::Little, &mut bytes);
        let pool = Descriptors { bytes: &bytes, order: Endianness::Little };
        assert_eq!(pool.read::<TensorDescriptor>(8), Ok(TENSOR));
        let missing = pool.read::<TensorDescriptor>(12).expect_err("four bytes are missing");
        assert_eq!(missing, "the TensorDescriptor at byte 12 of the constant pool");
        assert!(pool.read_before::<SignatureDescriptor>(8).is_err());
    }
}
