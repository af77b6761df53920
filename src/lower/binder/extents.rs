//! Checks the sizes and strides of tensors (C5.9 to C5.17, C10.9 to C10.18).

use super::dims::DIM_PATH;
use super::helper::{Binder, EXPECTED_NUMBER, GOT, GOT_NUMBER, VALUE_ERROR};
use super::state::BinderState;
use super::structured::{Behind, Condition};
use super::tensors::Tensor;
use crate::ir::{BinaryOp, Type, Val};
use crate::lower::abi::tensor::STRIDES;
use crate::lower::protocol::{
    Capability, DimDescriptor, Field, Path, Piece, TensorDescriptor, TensorFlags, field, offset,
};
use crate::spec::any_size;

impl<'c> Binder<'c, '_> {
    /// The descriptor of dimension `index` of the tensor. Sizes come first, then strides.
    fn dimension(&self, ty: Val<'c>, index: Val<'c>) -> Val<'c> {
        ty.behind::<TensorDescriptor>().nth_descriptor::<DimDescriptor>(index)
    }

    /// Checks each size.
    pub(super) fn sizes(&self, t: Tensor<'c>) {
        self.set_member(".shape[");
        let stated = t.ty.read32(field!(TensorDescriptor, rank)).ge(0);
        self.c.for_up(t.rank, |d| {
            self.set_path(offset!(Path, dim), d);
            let size = self.at(t.shape, d);
            self.either(
                Capability::Ranked,
                Capability::AnyRank,
                stated,
                || self.size(self.dimension(t.ty, d), size),
                || {
                    self.require_of_telling(
                        size.ge(0),
                        VALUE_ERROR,
                        &DIM_PATH,
                        &[Piece::Text(any_size!()), GOT, GOT_NUMBER],
                        || self.set_field(Field::Got, size),
                    );
                },
            );
        });
    }

    /// Element `index` of an array of 64-bit integers.
    fn at(&self, array: Val<'c>, index: Val<'c>) -> Val<'c> {
        array.element(index, Type::I64).load(Type::I64, 0)
    }

    /// The product of two non-negative numbers, and whether it fits: the upper half is 0 and the lower half is not
    /// negative.
    pub(super) fn product_fits(&self, x: Val<'c>, y: Val<'c>) -> (Val<'c>, Val<'c>) {
        let (lower, mark) = self.product(x, y);
        (lower, mark.is(0))
    }

    /// The product, and a number that is 0 if it fits.
    fn product(&self, x: Val<'c>, y: Val<'c>) -> (Val<'c>, Val<'c>) {
        let upper = x.binary(BinaryOp::SMulHi, y);
        let lower = x * y;
        let sign = lower >> 63;
        (lower, upper | sign)
    }

    /// Checks strides and returns the number of elements; every product of trailing sizes has to fit. NULL strides mean
    /// contiguous. A dimension of size 1 may have any stride, and an empty tensor any strides (C10.16 to C10.18).
    /// Writes the strides that the fast path expects.
    pub(super) fn strides(&self, t: Tensor<'c>) -> Val<'c> {
        let given = t.from.load(Type::Ptr, STRIDES);
        let has = given.is_not(0);
        let compact = self.compact_strides(t);
        let given = has.select(given, compact);
        let [product, overflow, wrong] = [(); 3].map(|()| self.c.var(Type::I64));
        for (var, value) in [(product, 1), (overflow, 0), (wrong, -1)] {
            var.set(self.c.i64(value));
        }
        // goes from the last dimension to the first, so the error that remains is that of the first
        self.c.for_down(t.rank, |d| {
            let compact = product.get();
            let strides = self.compact_strides(t);
            strides.element(d, Type::I64).store(0, compact);
            let size = self.at(t.shape, d);
            if self.has(Capability::Compact) {
                let stride = self.at(given, d);
                wrong.set((stride.is_not(compact) & size.is_not(1)).select(d, wrong.get()));
            }
            let (next, mark) = self.product(compact, size);
            product.set(next);
            overflow.set(overflow.get() | mark);
        });
        let overflow = overflow.get();
        let fits = overflow.is(0);
        self.require_member(
            fits,
            ".shape",
            &[Piece::Text("sizes whose product fits in 64 bits, got an overflow")],
            || {},
        );
        let count = product.get();
        let empty = count.is(0);
        let wrong = wrong.get();
        self.either_strides(
            t,
            || self.other_strides(t, given, empty),
            || {
                self.require_of_telling(
                    Condition::Any(vec![wrong.lt(0), empty]),
                    VALUE_ERROR,
                    &DIM_PATH,
                    &[EXPECTED_NUMBER, Piece::Text(" (contiguous)"), GOT, GOT_NUMBER],
                    || {
                        self.set_member(".strides[");
                        self.set_path(offset!(Path, dim), wrong);
                        let strides = self.compact_strides(t);
                        let (stride, compact) = (self.at(given, wrong), self.at(strides, wrong));
                        self.set_field(Field::Got, stride);
                        self.set_field(Field::Expected, compact);
                    },
                );
            },
        );
        count
    }

    /// Runs `other` if the tensor's strides are stated or arbitrary, otherwise `compact`.
    fn either_strides(&self, t: Tensor<'c>, other: impl FnOnce(), compact: impl FnOnce()) {
        let some = [Capability::Strided, Capability::AnyStrides].into_iter().any(|capability| self.has(capability));
        match (some, self.has(Capability::Compact)) {
            (true, true) => {
                self.c.when_else(
                    self.has_flag(t.flags, TensorFlags::STRIDED | TensorFlags::ANY_STRIDES),
                    other,
                    compact,
                );
            }
            (true, false) => other(),
            (false, _) => compact(),
        }
    }

    /// Checks strides that are stated or arbitrary.
    fn other_strides(&self, t: Tensor<'c>, given: Val<'c>, empty: Val<'c>) {
        let stated = self.has_flag(t.flags, TensorFlags::STRIDED);
        self.set_member(".strides[");
        self.c.for_up(t.rank, |d| {
            let stride = self.at(given, d);
            let to = self.compact_strides(t).element(d, Type::I64);
            self.either(
                Capability::Strided,
                Capability::AnyStrides,
                stated,
                || {
                    self.set_path(offset!(Path, dim), d);
                    let single = self.at(t.shape, d).is(1);
                    let excused = empty | single;
                    self.stride(self.dimension(t.ty, t.rank + d), stride, excused);
                    to.store(0, self.field(Field::Accepted));
                },
                || to.store(0, stride),
            );
        });
    }
}
