//! The conditions of the fast path. Each leads to the slow path where it doesn't hold: the
//! [binder](crate::lower::binder) finds out there which check fails, if any.
//!
//! Most conditions are a branch of their own, so that the operands of a comparison stay in memory until then. Conditions on single bits,
//! on which no load depends, are pending until they are flushed: bits of any number of values that must be 0 cost one branch
//! together. So do products that must fit, if no factor is large. Several pointers share a set bit, if none of them is NULL.

use std::collections::HashMap;

use crate::ir::{BinaryOp, Block, ConvertOp, FunctionBuilder, Hint, IntCC, Type, Value};

/// Conditions that no branch has tested yet.
#[derive(Default)]
struct Pending {
    /// For each mask an `I64` whose bits in the mask must be 0.
    bits: Vec<(i64, Value)>,
    /// `I64`s that must not be negative.
    sizes: Vec<Value>,
    volumes: Vec<Volume>,
}

/// The conditions that are pending outside of a part that is not always run.
pub(super) struct Apart(Pending);

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

/// The zero of a type.
pub(super) fn zero(b: &mut FunctionBuilder<'_>, ty: Type) -> Value {
    match ty {
        Type::Ptr => b.ptr_const(0),
        Type::F32 => b.f32(0.0),
        Type::F64 => b.f64(0.0),
        Type::Bool => b.bconst(false),
        ty => b.iconst(ty, 0),
    }
}

impl Pending {
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

/// A function under construction, and the place that failed conditions lead to.
pub(in crate::lower) struct Checks<'b, 'm> {
    pub b: &'b mut FunctionBuilder<'m>,
    /// `None` where all conditions hold.
    slow_path: Option<Block>,
    pending: Pending,
    /// The first look-up that could not fail and did, a bug.
    missing: Option<String>,
}

impl<'b, 'm> Checks<'b, 'm> {
    /// Checks that leave to `slow_path`, a block without parameters, where they fail.
    pub(in crate::lower) fn new(b: &'b mut FunctionBuilder<'m>, slow_path: Block) -> Self {
        Checks { b, slow_path: Some(slow_path), pending: Pending::default(), missing: None }
    }

    /// Checks of values that the binder has made, for convention `flat`: every condition holds, and no code is made for it.
    pub(in crate::lower) fn trusting(b: &'b mut FunctionBuilder<'m>) -> Self {
        Checks { b, slow_path: None, pending: Pending::default(), missing: None }
    }

    /// The block that failed conditions lead to; `None` where all conditions hold.
    pub(super) fn slow_path(&self) -> Option<Block> {
        self.slow_path
    }

    /// Notes that a look-up has failed that can't fail: lowering ends in [`LowerError::Internal`](crate::lower::LowerError). Gives a value to
    /// go on with.
    pub(in crate::lower) fn missing(&mut self, what: String, ty: Type) -> Value {
        self.missing.get_or_insert(what);
        zero(self.b, ty)
    }

    /// Ends the checks.
    ///
    /// # Errors
    /// The first look-up that has failed, in words.
    pub(in crate::lower) fn finish(self) -> Result<(), String> {
        self.missing.map_or(Ok(()), Err)
    }

    /// Goes on where all pending conditions hold.
    pub(in crate::lower) fn flush(&mut self) {
        self.flush_bits();
        self.flush_sizes();
    }

    /// Goes on where the pending conditions on bits hold. Nothing else may need their values any longer.
    pub(super) fn flush_bits(&mut self) {
        for (mask, bits) in std::mem::take(&mut self.pending.bits) {
            let fine = none_of(self.b, bits, mask);
            self.require(fine);
        }
    }

    /// Goes on where the pending conditions on sizes hold.
    fn flush_sizes(&mut self) {
        let mut sizes = std::mem::take(&mut self.pending.sizes);
        let volumes = std::mem::take(&mut self.pending.volumes);
        let Some(slow_path) = self.slow_path else { return };
        let mut factors: Vec<Value> = Vec::new();
        for factor in volumes.iter().flat_map(|volume| &volume.factors) {
            if !factors.contains(factor) {
                factors.push(*factor);
            }
        }
        sizes.retain(|size| !factors.contains(size));
        if let Some(sizes) = any(self.b, &sizes) {
            let fine = self.b.icmp_imm(IntCC::SGe, sizes, 0);
            self.require(fine);
        }
        let Some(all) = any(self.b, &factors) else { return };
        let (next, exactly) = (self.b.block(), self.b.cold_block());
        let small = self.b.icmp_imm(IntCC::ULt, all, LARGE);
        self.b.branch(small, next, exactly, Hint::Likely);
        self.b.switch_to(exactly);
        self.fits(&volumes, slow_path);
        self.b.jump(next, &[]);
        self.b.switch_to(next);
    }

    /// Goes on where sizes aren't negative, and their products fit.
    ///
    /// The product in floating point is off by less than one in 2^50. Where it is below `NEAR`, the product is below 2^64, so that its
    /// sign in 64 bits tells whether it fits; elsewhere it doesn't. The upper half of a product would take registers that are fixed. Bits are
    /// compared, as those of floats that aren't negative are in order: a float constant would be a symbol in an object for Windows.
    fn fits(&mut self, volumes: &[Volume], slow_path: Block) {
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
        let natural = any(self.b, &signs).map(|signs| self.b.icmp_imm(IntCC::SGe, signs, 0));
        for fine in near.into_iter().chain(natural) {
            let next = self.b.cold_block();
            self.b.branch(fine, next, slow_path, Hint::Likely);
            self.b.switch_to(next);
        }
    }

    /// Starts a part of the code that is not always run: conditions that are pending outside of it stay pending.
    pub(super) fn begin_apart(&mut self) -> Apart {
        Apart(std::mem::take(&mut self.pending))
    }

    /// Ends that part: its own conditions are flushed.
    pub(super) fn end_apart(&mut self, outside: Apart) {
        self.flush();
        self.pending = outside.0;
    }

    /// Goes on where a `Bool` holds.
    pub(super) fn require(&mut self, condition: Value) {
        let Some(slow_path) = self.slow_path else { return };
        let next = self.b.block();
        self.b.branch(condition, next, slow_path, Hint::Likely);
        self.b.switch_to(next);
    }

    /// Goes on where two integers of one type are equal.
    pub(in crate::lower) fn require_equal(&mut self, a: Value, b: Value) {
        if self.slow_path.is_none() {
            return;
        }
        let equal = self.b.icmp(IntCC::Eq, a, b);
        self.require(equal);
    }

    /// An `I64` that has to be 0.
    pub(super) fn require_zero(&mut self, value: Value) {
        if self.slow_path.is_none() {
            return;
        }
        self.pending.add(self.b, ALL, value);
    }

    /// An `I64` that has to be a multiple of a power of two.
    pub(super) fn require_multiple(&mut self, value: Value, of: u32) {
        if of > 1 && self.slow_path.is_some() {
            self.pending.add(self.b, i64::from(of) - 1, value);
        }
    }

    /// Goes on where a pointer is not NULL.
    pub(in crate::lower) fn require_non_null(&mut self, pointer: Value) {
        if self.slow_path.is_none() {
            return;
        }
        let there = self.b.icmp_imm(IntCC::Ne, pointer, 0);
        self.require(there);
    }

    /// Goes on where none of the pointers is NULL. A bit that is set in all of them shows that; without such a bit, each is compared.
    pub(super) fn require_all_non_null(&mut self, pointers: &[Value]) {
        let ([before @ .., last], Some(slow_path)) = (pointers, self.slow_path) else { return };
        if before.is_empty() {
            return self.require_non_null(*last);
        }
        let bits: Vec<_> = pointers.iter().map(|p| self.b.convert(ConvertOp::PtrToInt, Type::I64, *p)).collect();
        let all = |b: &mut FunctionBuilder<'_>, op| {
            let bits = bits.iter().copied().reduce(|x, y| b.binary(op, x, y)).unwrap_or(*last);
            b.icmp_imm(IntCC::Ne, bits, 0)
        };
        let (next, exactly) = (self.b.block(), self.b.cold_block());
        let share = all(self.b, BinaryOp::And);
        self.b.branch(share, next, exactly, Hint::Likely);
        self.b.switch_to(exactly);
        let there = all(self.b, BinaryOp::UMin);
        self.b.branch(there, next, slow_path, Hint::Likely);
        self.b.switch_to(next);
    }

    /// Goes on where as many bytes are the same at both addresses of each pair.
    pub(super) fn require_same_bytes(&mut self, pairs: Vec<(Value, Value)>, bytes: u32) {
        if !pairs.is_empty() && self.slow_path.is_some() {
            let same = self.b.same_bytes(pairs, bytes);
            self.require(same);
        }
    }

    /// An `I64` that must not be negative.
    pub(in crate::lower) fn require_non_negative(&mut self, value: Value) {
        self.pending.sizes.push(value);
    }

    /// Products of trailing sizes: the strides of a compact tensor. The product of all must fit, if `checked` (C10.16).
    pub(in crate::lower) fn products(&mut self, sizes: &[Value], checked: bool) -> Vec<Value> {
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
            self.pending.volumes.push(Volume { sizes: sizes.iter().rev().copied().collect(), factors });
        }
        strides
    }
}
