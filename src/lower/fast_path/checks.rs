//! The conditions of the fast path. If one fails, control goes to the slow path. There the
//! [binder](crate::lower::binder) determines which check fails, if any.
//!
//! Most conditions have their own branch, so the operands of a comparison stay in memory until then. Conditions on
//! single bits that no load depends on stay pending until they are flushed. The bits of any number of values that must
//! be 0 then cost one branch together. The same applies to products that must fit, if no factor is large. The test that
//! several pointers are not NULL looks for a bit that is set in all of them.

use std::collections::HashMap;

use super::range::Range;
use super::state::Ranged;
use crate::ir::{BinaryOp, Block, ConvertOp, FunctionBuilder, Hint, IntCC, Type, Value};

/// Conditions that no branch has tested yet.
#[derive(Default)]
struct Pending {
    /// For each mask an `I64`. Its bits in the mask must be 0.
    bits: Vec<(i64, Value)>,
    /// `I64`s that must not be negative.
    sizes: Vec<Value>,
    volumes: Vec<Volume>,
}

/// The pending conditions outside of a conditional part of the code.
pub(super) struct Apart(Pending);

/// Two or more sizes with a product that must fit into 63 bits.
struct Volume {
    sizes: Vec<Value>,
    /// All operands of the multiplications: the sizes, and products of them.
    factors: Vec<Value>,
}

/// All bits.
const ALL: i64 = -1;
/// The product of two numbers below this always fits. It is small enough for an immediate operand.
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

/// The bitwise or of all values.
fn any(b: &mut FunctionBuilder<'_>, values: &[Value]) -> Option<Value> {
    values.iter().copied().reduce(|x, y| b.binary(BinaryOp::Or, x, y))
}

/// Whether all bits in the mask are 0.
fn none_of(b: &mut FunctionBuilder<'_>, bits: Value, mask: i64) -> Value {
    let rest = if mask == ALL { bits } else { b.binary_imm(BinaryOp::And, bits, mask) };
    b.icmp_imm(IntCC::Eq, rest, 0)
}

/// A function under construction, and the block that failed conditions go to.
pub(in crate::lower) struct Checks<'b, 'm> {
    pub b: &'b mut FunctionBuilder<'m>,
    /// `None` if all conditions are known to hold.
    slow_path: Option<Block>,
    pending: Pending,
    /// The first failed look-up that should never fail; a bug.
    missing: Option<String>,
}

impl<'b, 'm> Checks<'b, 'm> {
    /// Checks that go to `slow_path`, a block without parameters, when they fail.
    pub(in crate::lower) fn new(b: &'b mut FunctionBuilder<'m>, slow_path: Block) -> Self {
        Checks { b, slow_path: Some(slow_path), pending: Pending::default(), missing: None }
    }

    /// Checks of values that the binder has written, in the form of convention `flat`. Every condition holds, so no
    /// code is emitted for it.
    pub(in crate::lower) fn trusting(b: &'b mut FunctionBuilder<'m>) -> Self {
        Checks { b, slow_path: None, pending: Pending::default(), missing: None }
    }

    /// The block that failed conditions go to; `None` if all conditions hold.
    pub(super) fn slow_path(&self) -> Option<Block> {
        self.slow_path
    }

    /// Records that a look-up failed that should never fail: lowering ends with
    /// [`LowerError::Internal`](crate::lower::LowerError). Returns a placeholder value.
    pub(in crate::lower) fn missing(&mut self, what: String, ty: Type) -> Value {
        self.missing.get_or_insert(what);
        zero(self.b, ty)
    }

    /// Ends the checks.
    ///
    /// # Errors
    /// A description of the first failed look-up.
    pub(in crate::lower) fn finish(self) -> Result<(), String> {
        self.missing.map_or(Ok(()), Err)
    }

    /// Tests all pending conditions; continues if they hold.
    pub(in crate::lower) fn flush(&mut self) {
        self.flush_bits();
        self.flush_sizes();
    }

    /// Tests the pending conditions on bits; continues if they hold. Call it when no other code needs their values any
    /// longer.
    pub(super) fn flush_bits(&mut self) {
        for (mask, bits) in std::mem::take(&mut self.pending.bits) {
            let fine = none_of(self.b, bits, mask);
            self.require(fine);
        }
    }

    /// Tests the pending conditions on sizes; continues if they hold.
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

    /// Continues if sizes aren't negative and their products fit.
    ///
    /// The floating-point product has a relative error below 2^-50. If it is below `NEAR`, the exact product is below
    /// 2^64, so its sign in 64 bits shows whether it fits; otherwise it doesn't fit. Computing the upper half of a
    /// product instead would need fixed registers. The floats are compared by their bits, because a float constant
    /// would be a variable in an object for Windows. The bits of non-negative floats have the same order.
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

    /// Starts a conditional part of the code. Conditions pending outside of it stay pending.
    pub(super) fn begin_apart(&mut self) -> Apart {
        Apart(std::mem::take(&mut self.pending))
    }

    /// Ends a conditional part, and flushes its own conditions.
    pub(super) fn end_apart(&mut self, outside: Apart) {
        self.flush();
        self.pending = outside.0;
    }

    /// Continues if a `Bool` holds.
    pub(super) fn require(&mut self, condition: Value) {
        let Some(slow_path) = self.slow_path else { return };
        let next = self.b.block();
        self.b.branch(condition, next, slow_path, Hint::Likely);
        self.b.switch_to(next);
    }

    /// Continues if two integers of one type are equal.
    pub(in crate::lower) fn require_equal(&mut self, a: Value, b: Value) {
        if self.slow_path.is_none() {
            return;
        }
        let equal = self.b.icmp(IntCC::Eq, a, b);
        self.require(equal);
    }

    /// Requires an `I64` to be 0.
    pub(super) fn require_zero(&mut self, value: Value) {
        if self.slow_path.is_none() {
            return;
        }
        self.pending.add(self.b, ALL, value);
    }

    /// Requires an `I64` to be a multiple of a power of two.
    pub(super) fn require_multiple(&mut self, value: Value, of: u32) {
        if of > 1 && self.slow_path.is_some() {
            self.pending.add(self.b, i64::from(of) - 1, value);
        }
    }

    /// Continues if a pointer is not NULL.
    pub(in crate::lower) fn require_non_null(&mut self, pointer: Value) {
        if self.slow_path.is_none() {
            return;
        }
        let there = self.b.icmp_imm(IntCC::Ne, pointer, 0);
        self.require(there);
    }

    /// Continues if none of the pointers is NULL. A bit that is set in all of them proves that; without such a bit,
    /// each pointer is compared.
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

    /// Continues if the first `bytes` bytes at the two addresses of each pair are equal.
    pub(super) fn require_same_bytes(&mut self, pairs: Vec<(Value, Value)>, bytes: u32) {
        if !pairs.is_empty() && self.slow_path.is_some() {
            let same = self.b.same_bytes(pairs, bytes);
            self.require(same);
        }
    }

    /// Requires an `I64` not to be negative.
    pub(super) fn require_non_negative(&mut self, value: Value) {
        self.pending.sizes.push(value);
    }

    /// Requires a computed size not to be negative, unless other checks imply it. Returns it with what is known then.
    pub(super) fn require_size(&mut self, Ranged { value, range }: Ranged) -> Ranged {
        if !range.is_size() {
            self.require_non_negative(value);
        }
        Ranged { value, range: range.within(Range::SIZE) }
    }

    /// Products of trailing sizes: the strides of a contiguous tensor. If `checked`, the product of all sizes must fit
    /// (C10.16).
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
