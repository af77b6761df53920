//! The good path's conditions. All lead to one place where they don't hold: what exactly is wrong, if anything, is found out
//! [there](super::support::bind).
//!
//! Most are a branch of their own, so that what they compare stays in memory until then. Conditions on single bits, on which no load
//! depends, are gathered: bits that must be 0, of any number of values, cost one branch in the end. So do products that must fit,
//! where no factor is large. Several pointers have a bit in common, where none is NULL.

use std::collections::HashMap;

use super::wrapper::Lowerer;
use crate::ir::{BinaryOp, ConvertOp, FunctionBuilder, Hint, IntCC, Type, Value};

/// Conditions that are still to be branched on.
#[derive(Default)]
pub(super) struct Gathered {
    /// For each mask an `I64` of whose bits those in the mask must be 0.
    bits: Vec<(i64, Value)>,
    /// `I64`s that must not be negative.
    sizes: Vec<Value>,
    volumes: Vec<Volume>,
}

/// Sizes, two or more, whose product must fit into 63 bits.
struct Volume {
    sizes: Vec<Value>,
    /// All that is multiplied on the way: the sizes, and products of them.
    factors: Vec<Value>,
}

/// All bits.
const ALL: i64 = -1;
/// The product of two numbers below always fits. Machines compare with it at once.
const LARGE: i64 = 1 << 30;

impl Gathered {
    fn add(&mut self, b: &mut FunctionBuilder<'_>, mask: i64, value: Value) {
        match self.bits.iter_mut().find(|(known, _)| *known == mask) {
            Some((_, bits)) => *bits = b.binary(BinaryOp::Or, *bits, value),
            None => self.bits.push((mask, value)),
        }
    }
}

/// All bits of all values.
fn any(b: &mut FunctionBuilder<'_>, values: &[Value]) -> Option<Value> {
    values.iter().copied().reduce(|x, y| b.binary(BinaryOp::Or, x, y))
}

/// Whether all bits in the mask are 0.
fn none_of(b: &mut FunctionBuilder<'_>, bits: Value, mask: i64) -> Value {
    let rest = if mask == ALL { bits } else { b.binary_imm(BinaryOp::And, bits, mask) };
    b.icmp_imm(IntCC::Eq, rest, 0)
}

impl Lowerer<'_> {
    /// Goes on where all gathered conditions hold.
    pub(super) fn settle(&mut self) {
        self.settle_bits();
        self.settle_sizes();
    }

    /// The same of those on bits that have to be 0, whose values nothing else may need any longer.
    pub(super) fn settle_bits(&mut self) {
        for (mask, bits) in std::mem::take(&mut self.gathered.bits) {
            let fine = none_of(&mut self.b, bits, mask);
            self.require(fine);
        }
    }

    /// The same of those on sizes.
    fn settle_sizes(&mut self) {
        let mut sizes = std::mem::take(&mut self.gathered.sizes);
        let volumes = std::mem::take(&mut self.gathered.volumes);
        let mut factors: Vec<Value> = Vec::new();
        for factor in volumes.iter().flat_map(|volume| &volume.factors) {
            if !factors.contains(factor) {
                factors.push(*factor);
            }
        }
        sizes.retain(|size| !factors.contains(size));
        if let Some(sizes) = any(&mut self.b, &sizes) {
            let fine = self.b.icmp_imm(IntCC::SGe, sizes, 0);
            self.require(fine);
        }
        let Some(all) = any(&mut self.b, &factors) else { return };
        let (next, exactly) = (self.b.block(), self.b.cold_block());
        let small = self.b.icmp_imm(IntCC::ULt, all, LARGE);
        self.b.branch(small, next, exactly, Hint::Likely);
        self.b.switch_to(exactly);
        self.fits(&volumes);
        self.b.jump(next, &[]);
        self.b.switch_to(next);
    }

    /// Goes on where sizes aren't negative, and their products fit.
    ///
    /// The product in floating point is off by less than one in 2^50. Where it is below `NEAR`, the product is below 2^64, so that its
    /// sign in 64 bits tells whether it fits; elsewhere it doesn't. The upper half of a product would take registers that are fixed. Bits are
    /// compared, as those of floats that aren't negative are in order: a float constant would be a symbol in an object for Windows.
    fn fits(&mut self, volumes: &[Volume]) {
        const NEAR: i64 = (1.5 * (1u64 << 63) as f64).to_bits() as i64;
        let (mut signs, mut near): (Vec<Value>, _) = (Vec::new(), None);
        let mut floats: HashMap<Value, Value> = HashMap::new();
        for Volume { sizes, .. } in volumes {
            let mut product = sizes[0];
            for size in &sizes[1..] {
                let [x, y] = [product, *size].map(|factor| {
                    let float = || self.b.convert(ConvertOp::SIntToFloat, Type::F64, factor);
                    *floats.entry(factor).or_insert_with(float)
                });
                let about = self.b.binary(BinaryOp::FMul, x, y);
                let about = self.b.convert(ConvertOp::Bitcast, Type::I64, about);
                let is_near = self.b.icmp_imm(IntCC::SLt, about, NEAR);
                near = Some(near.map_or(is_near, |before| self.b.binary(BinaryOp::And, before, is_near)));
                product = self.b.binary(BinaryOp::Mul, product, *size);
                signs.push(product);
            }
        }
        for size in volumes.iter().flat_map(|volume| &volume.sizes) {
            if !signs.contains(size) {
                signs.push(*size);
            }
        }
        let natural = any(&mut self.b, &signs).map(|signs| self.b.icmp_imm(IntCC::SGe, signs, 0));
        for fine in near.into_iter().chain(natural) {
            let next = self.b.cold_block();
            self.b.branch(fine, next, self.doubt, Hint::Likely);
            self.b.switch_to(next);
        }
    }

    /// Runs `then` apart: conditions that it gathers are settled in its end.
    pub(super) fn apart<R>(&mut self, then: impl FnOnce(&mut Self) -> R) -> R {
        let outside = std::mem::take(&mut self.gathered);
        let result = then(self);
        self.settle();
        self.gathered = outside;
        result
    }

    /// Goes on where a `Bool` holds.
    pub(super) fn require(&mut self, condition: Value) {
        let next = self.b.block();
        self.b.branch(condition, next, self.doubt, Hint::Likely);
        self.b.switch_to(next);
    }

    /// Goes on where two integers of one type are equal.
    pub(super) fn require_equal(&mut self, a: Value, b: Value) {
        let equal = self.b.icmp(IntCC::Eq, a, b);
        self.require(equal);
    }

    /// An `I64` that has to be 0.
    pub(super) fn require_zero(&mut self, value: Value) {
        self.gathered.add(&mut self.b, ALL, value);
    }

    /// An `I64` that has to be a multiple of a power of two.
    pub(super) fn require_multiple(&mut self, value: Value, of: u32) {
        if of > 1 {
            self.gathered.add(&mut self.b, i64::from(of) - 1, value);
        }
    }

    /// Goes on where a pointer is not NULL.
    pub(super) fn require_there(&mut self, pointer: Value) {
        let there = self.b.icmp_imm(IntCC::Ne, pointer, 0);
        self.require(there);
    }

    /// Goes on where no pointer of these is NULL. A bit that is set in all of them says so; where there is none, each is looked at.
    pub(super) fn require_all_there(&mut self, pointers: &[Value]) {
        let [before @ .., last] = pointers else { return };
        if before.is_empty() {
            return self.require_there(*last);
        }
        let bits: Vec<_> = pointers.iter().map(|p| self.b.convert(ConvertOp::PtrToInt, Type::I64, *p)).collect();
        let all = |b: &mut FunctionBuilder<'_>, op| {
            let bits = bits.iter().copied().reduce(|x, y| b.binary(op, x, y)).unwrap_or(*last);
            b.icmp_imm(IntCC::Ne, bits, 0)
        };
        let (next, exactly) = (self.b.block(), self.b.cold_block());
        let share = all(&mut self.b, BinaryOp::And);
        self.b.branch(share, next, exactly, Hint::Likely);
        self.b.switch_to(exactly);
        let there = all(&mut self.b, BinaryOp::UMin);
        self.b.branch(there, next, self.doubt, Hint::Likely);
        self.b.switch_to(next);
    }

    /// Goes on where as many bytes are the same at both addresses of each pair.
    pub(super) fn require_same(&mut self, pairs: Vec<(Value, Value)>, bytes: u32) {
        if !pairs.is_empty() {
            let same = self.b.same_bytes(pairs, bytes);
            self.require(same);
        }
    }

    /// An `I64` that must not be negative.
    pub(super) fn require_non_negative(&mut self, value: Value) {
        self.gathered.sizes.push(value);
    }

    /// Products of trailing sizes: the strides of what is compact. The product of all must fit, if `checked` (contract 4).
    pub(super) fn products(&mut self, sizes: &[Value], checked: bool) -> Vec<Value> {
        let mut strides = vec![self.b.i64(1)];
        let mut factors = sizes.to_vec();
        for size in sizes.iter().skip(1).rev() {
            strides.push(match strides.len() {
                1 => *size,
                _ => {
                    let product = self.b.binary(BinaryOp::Mul, strides[strides.len() - 1], *size);
                    factors.push(product);
                    product
                }
            });
        }
        strides.truncate(sizes.len());
        strides.reverse();
        if checked && sizes.len() > 1 {
            self.gathered.volumes.push(Volume { sizes: sizes.iter().rev().copied().collect(), factors });
        }
        strides
    }
}
