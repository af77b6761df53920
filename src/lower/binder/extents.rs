//! Sizes and strides of tensors (C5.9 to C5.17, C10.9 to C10.18).

use super::helper::{Binder, EXPECTED_NUMBER, GOT, GOT_NUMBER, VALUE_ERROR};
use super::state::BinderState;
use super::structured::{Condition, StructuredCode, Var};
use super::tensors::Tensor;
use crate::ir::{BinaryOp, IntCC, MemFlags, Type, Value};
use crate::lower::abi::tensor::STRIDES;
use crate::lower::protocol::{
    Capability, DimDescriptor, Directive, Field, Path, Piece, TensorDescriptor, TensorFlags, field, offset,
};

/// `.shape[0]`
const DIM_PATH: [Piece<'static>; 1] = [Piece::Value(Directive::DimPath, Field::Path as u32)];

impl Binder<'_, '_> {
    /// Dimension `index` of the tensor's descriptor: the sizes, then the strides.
    fn dimension(&mut self, ty: Value, index: Value) -> Value {
        let first = self.behind::<TensorDescriptor>(ty);
        self.nth_descriptor::<DimDescriptor>(first, index)
    }

    /// Sizes, one by one.
    pub(super) fn sizes(&mut self, t: Tensor) {
        self.set_member(".shape[");
        let stated = self.read32(t.ty, field!(TensorDescriptor, rank));
        let stated = self.b.icmp_imm(IntCC::SGe, stated, 0);
        self.for_up(t.rank, |r, d| {
            r.set_path(offset!(Path, dim), d);
            let size = r.at(t.shape, d);
            r.either(
                Capability::Ranked,
                Capability::AnyRank,
                stated,
                |r| {
                    let dim = r.dimension(t.ty, d);
                    r.size(dim, size);
                },
                |r| {
                    let ok = r.b.icmp_imm(IntCC::SGe, size, 0);
                    let pieces = [Piece::Text("a size of at least 0"), GOT, GOT_NUMBER];
                    r.require_of_telling(ok, VALUE_ERROR, &DIM_PATH, &pieces, |r| r.set_field(Field::Got, size));
                },
            );
        });
    }

    /// Number `index` of an array of 64-bit integers.
    fn at(&mut self, array: Value, index: Value) -> Value {
        let at = self.b.element(array, index, Type::I64);
        self.b.load(Type::I64, at, 0, MemFlags::ALIGNED)
    }

    /// The product of two numbers that are not negative, and whether it fits: where the upper half is 0 and the lower half not
    /// negative.
    pub(super) fn product_fits(&mut self, x: Value, y: Value) -> (Value, Value) {
        let (lower, mark) = self.product(x, y);
        (lower, self.is(mark, 0))
    }

    /// The product, and 0 where it fits.
    fn product(&mut self, x: Value, y: Value) -> (Value, Value) {
        let upper = self.b.binary(BinaryOp::SMulHi, x, y);
        let lower = self.b.binary(BinaryOp::Mul, x, y);
        let sixty_three = self.b.i64(63);
        let sign = self.b.binary(BinaryOp::LShr, lower, sixty_three);
        (lower, self.or(upper, sign))
    }

    /// The number of elements, where every product of trailing sizes fits, and strides. NULL strides are compact;
    /// a size of 1 takes any stride, and an empty tensor any strides (C10.16 to C10.18). Writes the strides that the fast path expects.
    pub(super) fn strides(&mut self, t: Tensor) -> Value {
        let given = self.b.load(Type::Ptr, t.from, STRIDES, MemFlags::ALIGNED);
        let has = self.is_not(given, 0);
        let compact = self.compact_strides(t);
        let given = self.b.select(has, given, compact);
        let [product, overflow, wrong] = [(); 3].map(|()| Var::new(&mut self.b, Type::I64));
        for (var, value) in [(product, 1), (overflow, 0), (wrong, -1)] {
            let value = self.b.i64(value);
            self.set(var, value);
        }
        // from the last, so that what is found wrong in the end is the first
        self.for_down(t.rank, |r, d| {
            let compact = r.get(product);
            let strides = r.compact_strides(t);
            let to = r.b.element(strides, d, Type::I64);
            r.b.store(compact, to, 0, MemFlags::ALIGNED);
            let size = r.at(t.shape, d);
            if r.has(Capability::Compact) {
                let stride = r.at(given, d);
                let other = r.b.icmp(IntCC::Ne, stride, compact);
                let several = r.is_not(size, 1);
                let is_wrong = r.and(other, several);
                let before = r.get(wrong);
                let now = r.b.select(is_wrong, d, before);
                r.set(wrong, now);
            }
            let (next, mark) = r.product(compact, size);
            r.set(product, next);
            let before = r.get(overflow);
            let now = r.or(before, mark);
            r.set(overflow, now);
        });
        let overflow = self.get(overflow);
        let fits = self.is(overflow, 0);
        let pieces = [Piece::Text("sizes whose product fits in 64 bits, got an overflow")];
        self.require_member(fits, ".shape", &pieces, |_| {});
        let count = self.get(product);
        let empty = self.is(count, 0);
        let wrong = self.get(wrong);
        self.either_strides(
            t,
            |r| r.other_strides(t, given, empty),
            |r| {
                let right = r.b.icmp_imm(IntCC::SLt, wrong, 0);
                let ok = Condition::Any(vec![right, empty]);
                let pieces = [EXPECTED_NUMBER, Piece::Text(" (contiguous)"), GOT, GOT_NUMBER];
                r.require_of_telling(ok, VALUE_ERROR, &DIM_PATH, &pieces, |r| {
                    r.set_member(".strides[");
                    r.set_path(offset!(Path, dim), wrong);
                    let strides = r.compact_strides(t);
                    let (stride, compact) = (r.at(given, wrong), r.at(strides, wrong));
                    r.set_field(Field::Got, stride);
                    r.set_field(Field::Expected, compact);
                });
            },
        );
        count
    }

    /// Runs `other` where strides are stated or any, else `compact`.
    fn either_strides(&mut self, t: Tensor, other: impl FnOnce(&mut Self), compact: impl FnOnce(&mut Self)) {
        let some = [Capability::Strided, Capability::AnyStrides].into_iter().any(|capability| self.has(capability));
        match (some, self.has(Capability::Compact)) {
            (true, true) => {
                let is_other = self.has_flag(t.flags, TensorFlags::STRIDED | TensorFlags::ANY_STRIDES);
                self.when_else(is_other, other, compact);
            }
            (true, false) => other(self),
            (false, _) => compact(self),
        }
    }

    /// Strides that are stated, or any.
    fn other_strides(&mut self, t: Tensor, given: Value, empty: Value) {
        let stated = self.has_flag(t.flags, TensorFlags::STRIDED);
        self.set_member(".strides[");
        self.for_up(t.rank, |r, d| {
            let stride = r.at(given, d);
            let strides = r.compact_strides(t);
            let to = r.b.element(strides, d, Type::I64);
            r.either(
                Capability::Strided,
                Capability::AnyStrides,
                stated,
                |r| {
                    r.set_path(offset!(Path, dim), d);
                    let size = r.at(t.shape, d);
                    let single = r.is(size, 1);
                    let excused = r.or(empty, single);
                    let index = r.b.binary(BinaryOp::Add, t.rank, d);
                    let dim = r.dimension(t.ty, index);
                    r.stride(dim, stride, excused);
                    let accepted = r.field(Field::Accepted);
                    r.b.store(accepted, to, 0, MemFlags::ALIGNED);
                },
                |r| r.b.store(stride, to, 0, MemFlags::ALIGNED),
            );
        });
    }
}
