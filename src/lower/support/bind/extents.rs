//! Sizes and strides of tensors: contract 3 to 5.

use super::dims::{EXCUSED, IS_SIZE};
use super::tensors::Tensor;
use super::{Binder, EXPECTED_NUMBER, Field, GOT, GOT_NUMBER, VALUE_ERROR};
use crate::ir::{BinaryOp, ConvertOp, IntCC, MemFlags, Type, UnaryOp, Value};
use crate::lower::decode::tensor::STRIDES;
use crate::lower::messages::{Part, Tag};
use crate::lower::program::{Aspect, entry, flag, place, tensor};
use crate::lower::support::emit::{Emit, Var};
use crate::lower::support::state::State;

/// `.shape[0]`
const PLACE: [Part<'static>; 1] = [Part::Value(Tag::Place, Field::Here as u32)];

impl Binder<'_, '_> {
    /// Entry `index` of the record: the dimensions, then the strides.
    fn entry(&mut self, rec: Value, index: Value) -> Value {
        let first = self.b.ptr_add_imm(rec, i64::from(4 * tensor::SIZE));
        self.nth(first, index, 4 * entry::SIZE)
    }

    /// Sizes; notes whether any is 0, and requires every product of trailing sizes to fit.
    pub(super) fn sizes(&mut self, t: Tensor, shape: Value) {
        let overflow = Var::new(&mut self.b, Type::I64);
        let (zero, one) = (self.b.i64(0), self.b.i64(1));
        self.set(t.empty, zero);
        self.set(overflow, zero);
        self.set(t.product, one);
        self.set_part(".shape[");
        let stated = self.word(t.rec, tensor::RANK);
        let stated = self.b.icmp_imm(IntCC::SGe, stated, 0);
        self.for_up(t.rank, |r, d| {
            r.set_here(place::DIM, d);
            let at = r.b.element(shape, d, Type::I64);
            let size = r.b.load(Type::I64, at, 0, MemFlags::ALIGNED);
            r.either(
                Aspect::Ranked,
                Aspect::AnyRank,
                stated,
                |r| {
                    let entry = r.entry(t.rec, d);
                    let flags = r.b.i64(IS_SIZE);
                    r.dim(entry, size, flags);
                },
                |r| {
                    r.set_field(Field::Got, size);
                    let ok = r.b.icmp_imm(IntCC::SGe, size, 0);
                    r.require_of(ok, VALUE_ERROR, &PLACE, &[Part::Text("a size of at least 0"), GOT, GOT_NUMBER]);
                },
            );
            let is_zero = r.is(size, 0);
            let is_zero = r.b.convert(ConvertOp::ZExt, Type::I64, is_zero);
            let before = r.get(t.empty);
            let empty = r.or(before, is_zero);
            r.set(t.empty, empty);
        });
        self.for_down(t.rank, |r, d| {
            let at = r.b.element(shape, d, Type::I64);
            let size = r.b.load(Type::I64, at, 0, MemFlags::ALIGNED);
            let before = r.get(t.product);
            let (product, fits) = r.product_fits(before, size);
            r.set(t.product, product);
            let now = r.b.unary(UnaryOp::Not, fits);
            let now = r.b.convert(ConvertOp::ZExt, Type::I64, now);
            let before = r.get(overflow);
            let mark = r.or(before, now);
            r.set(overflow, mark);
        });
        let overflow = self.get(overflow);
        let fits = self.is(overflow, 0);
        let parts = [Part::Text("sizes whose product fits in 64 bits, got an overflow")];
        self.require_part(fits, ".shape", &parts);
    }

    /// The product of two numbers that are not negative, and whether it fits: where the upper half is 0 and the lower half not
    /// negative.
    pub(super) fn product_fits(&mut self, x: Value, y: Value) -> (Value, Value) {
        let upper = self.b.binary(BinaryOp::SMulHi, x, y);
        let lower = self.b.binary(BinaryOp::Mul, x, y);
        let sixty_three = self.b.i64(63);
        let sign = self.b.binary(BinaryOp::LShr, lower, sixty_three);
        let mark = self.or(upper, sign);
        (lower, self.is(mark, 0))
    }

    /// Contract 3 and 4: no strides mean compact ones; a size of 1 takes any stride, and an empty tensor any strides. Writes to
    /// `out` what the good path expects.
    pub(super) fn strides(&mut self, t: Tensor, shape: Value, out: Value) {
        let one = self.b.i64(1);
        self.set(t.product, one);
        self.for_down(t.rank, |r, d| {
            let compact = r.get(t.product);
            let to = r.b.element(out, d, Type::I64);
            r.b.store(compact, to, 0, MemFlags::ALIGNED);
            let at = r.b.element(shape, d, Type::I64);
            let size = r.b.load(Type::I64, at, 0, MemFlags::ALIGNED);
            let product = r.b.binary(BinaryOp::Mul, compact, size);
            r.set(t.product, product);
        });
        let given = self.b.load(Type::Ptr, t.from, STRIDES, MemFlags::ALIGNED);
        let has = self.is_not(given, 0);
        let source = self.b.select(has, given, out);
        let empty = self.get(t.empty);
        let empty = self.is_not(empty, 0);
        let stated = self.has_flag(t.flags, flag::STRIDED);
        let any = self.has_flag(t.flags, flag::ANY_STRIDES);
        self.set_part(".strides[");
        self.for_up(t.rank, |r, d| {
            let at = r.b.element(source, d, Type::I64);
            let stride = r.b.load(Type::I64, at, 0, MemFlags::ALIGNED);
            let at = r.b.element(shape, d, Type::I64);
            let size = r.b.load(Type::I64, at, 0, MemFlags::ALIGNED);
            let single = r.is(size, 1);
            let excused = r.or(empty, single);
            let to = r.b.element(out, d, Type::I64);
            r.set_here(place::DIM, d);
            r.either_strides(
                stated,
                |r| {
                    let index = r.b.binary(BinaryOp::Add, t.rank, d);
                    let entry = r.entry(t.rec, index);
                    let (none, some) = (r.b.i64(0), r.b.i64(EXCUSED));
                    let flags = r.b.select(excused, some, none);
                    r.dim(entry, stride, flags);
                    let accepted = r.field(Field::Accepted);
                    r.b.store(accepted, to, 0, MemFlags::ALIGNED);
                },
                |r| {
                    r.either(
                        Aspect::AnyStrides,
                        Aspect::Compact,
                        any,
                        |r| r.b.store(stride, to, 0, MemFlags::ALIGNED),
                        |r| {
                            let compact = r.b.load(Type::I64, to, 0, MemFlags::ALIGNED);
                            r.set_field(Field::Got, stride);
                            r.set_field(Field::Expected, compact);
                            let same = r.b.icmp(IntCC::Eq, stride, compact);
                            let ok = r.or(same, excused);
                            let parts = [EXPECTED_NUMBER, Part::Text(" (contiguous)"), GOT, GOT_NUMBER];
                            r.require_of(ok, VALUE_ERROR, &PLACE, &parts);
                        },
                    );
                },
            );
        });
    }

    fn either_strides(&mut self, stated: Value, then: impl FnOnce(&mut Self), otherwise: impl FnOnce(&mut Self)) {
        let free = if self.has(Aspect::Compact) { Aspect::Compact } else { Aspect::AnyStrides };
        self.either(Aspect::Strided, free, stated, then, otherwise);
    }
}
