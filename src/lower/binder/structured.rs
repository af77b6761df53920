//! Memory reads of helpers, and the conditions of checks.

use crate::ir::{Block, ConvertOp, Emitter, Hint, Operand, Type, Val};
use crate::lower::protocol::{Descriptor, DescriptorField};

/// A condition that has to hold. Each part becomes its own branch, because Cranelift needs more code to combine several
/// into one boolean.
pub(super) enum Condition<'c> {
    One(Val<'c>),
    Any(Vec<Val<'c>>),
    All(Vec<Val<'c>>),
}

impl<'c> From<Val<'c>> for Condition<'c> {
    fn from(value: Val<'c>) -> Self {
        Condition::One(value)
    }
}

impl<'c> Condition<'c> {
    /// Branches to `yes` if the condition holds, which is the likely case, else to `no`.
    pub(super) fn branch(self, c: Emitter<'c>, yes: Block, no: Block) {
        let (pieces, any) = match self {
            Condition::One(value) => (vec![value], true),
            Condition::Any(values) => (values, true),
            Condition::All(values) => (values, false),
        };
        let Some((last, others)) = pieces.split_last() else { return };
        for &part in others {
            let next = c.block();
            match any {
                true => c.branch(part, yes, next, Hint::None),
                false => c.branch(part, next, no, Hint::Likely),
            }
            c.switch_to(next);
        }
        c.branch(*last, yes, no, Hint::Likely);
    }
}

/// Reads of the memory at a pointer.
pub(super) trait Behind<'c>: Sized {
    /// The 32-bit word at index `index`.
    fn word32(self, index: i32) -> Val<'c>;

    /// The same, zero-extended.
    fn word(self, index: i32) -> Val<'c> {
        self.word32(index).zext()
    }

    /// The same, sign-extended.
    fn signed_word(self, index: i32) -> Val<'c> {
        self.word32(index).sext()
    }

    /// A field of the descriptor, as an `I64`.
    fn read(self, field: DescriptorField) -> Val<'c> {
        self.read_as(Type::I64, field)
    }

    /// The same, as an `I32`.
    fn read32(self, field: DescriptorField) -> Val<'c> {
        self.read_as(Type::I32, field)
    }

    fn read_as(self, ty: Type, field: DescriptorField) -> Val<'c>;

    /// The address after the `D`.
    fn behind<D: Descriptor>(self) -> Val<'c>;

    /// Descriptor `index` of the array that begins here.
    fn nth_descriptor<D: Descriptor>(self, index: Val<'c>) -> Val<'c> {
        self.nth(index, D::SIZE as i64)
    }

    /// Entry `index` of the array that begins here; `size` is the size of an entry in bytes.
    fn nth(self, index: Val<'c>, size: impl Operand<'c>) -> Val<'c>;

    /// A pointer plus a number of bytes, as a base for many reads. As a plain sum, Cranelift would recompute it at each
    /// access and keep both operands in registers until the last one.
    fn base(self, bytes: Val<'c>) -> Val<'c>;
}

impl<'c> Behind<'c> for Val<'c> {
    fn word32(self, index: i32) -> Val<'c> {
        self.load(Type::I32, 4 * index)
    }

    fn read_as(self, ty: Type, field: DescriptorField) -> Val<'c> {
        let value = self.load(field.ty, field.offset);
        if field.ty == ty {
            return value;
        }
        value.convert(if field.signed { ConvertOp::SExt } else { ConvertOp::ZExt }, ty)
    }

    fn behind<D: Descriptor>(self) -> Val<'c> {
        self + D::SIZE as i64
    }

    fn nth(self, index: Val<'c>, size: impl Operand<'c>) -> Val<'c> {
        self + index * size
    }

    fn base(self, bytes: Val<'c>) -> Val<'c> {
        let negated = -bytes;
        (self.address() - negated).pointer()
    }
}

/// The 64-bit value that a descriptor stores as two halves.
pub(super) fn halves<'c>(low: Val<'c>, high: Val<'c>) -> Val<'c> {
    (low & 0xffff_ffff_i64) | (high << 32)
}
