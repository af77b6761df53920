//! TMA descriptors: `CUtensorMap`s of tensor parameters, encoded by the driver (`cuTensorMapEncodeTiled`, cuda.h).

use super::emitter::LaunchEmitter;
use crate::ir::{BinaryOp, ConvertOp, IntCC, MemFlags, Type, Value};
use crate::lower::args::{data_type, stride_of, tensor_of};
use crate::lower::protocol::Piece;
use crate::spec::{Dim, Interleave, L2Promotion, Swizzle, TensorMap};

/// The size of a `CUtensorMap` in bytes, and its alignment.
const SIZE: u32 = 128;
const ALIGN: i64 = 64;

impl LaunchEmitter<'_, '_> {
    /// Encodes the descriptor of a tensor parameter; returns its address.
    pub(super) fn tensor_map(&mut self, map: &TensorMap) -> Value {
        let name = &map.tensor;
        let tensor = tensor_of(self.prepared.signature, name);
        let parts = tensor.and_then(|tensor| {
            let dtype = tensor.exact_dtype()?;
            Some((tensor.shape.dims()?.to_vec(), dtype, data_type(dtype)?))
        });
        let (Some((sizes, dtype, data_type)), Some((_, data)), Some(code), Some(failures)) =
            (parts, self.values.named(name), self.prepared.code.on_device(), self.failures)
        else {
            return self.values.missing_value(format!("the tensor map of {name}"), Type::Ptr);
        };
        let bytes = i64::from(dtype.bits) * i64::from(dtype.lanes) / 8;
        let address = self.values.b.convert(ConvertOp::PtrToInt, Type::I64, data);
        let align = if map.interleave == Interleave::Bytes32 { 32 } else { 16 };
        let rest = self.values.b.binary_imm(BinaryOp::And, address, align - 1);
        let aligned = self.values.b.icmp_imm(IntCC::Eq, rest, 0);
        let expected = format!(", expected a multiple of {align}, as its tensor map demands");
        self.values.require(aligned, address, &format!(", the address of {name} = "), &[Piece::Text(&expected)], None);
        let rank = sizes.len();
        let words = |emitter: &mut Self, count: usize, bytes: u32| {
            let slot = emitter.values.b.slot(bytes * count.max(1) as u32, 8);
            emitter.values.b.stack_addr(slot)
        };
        let (dims, strides) = (words(self, rank, 8), words(self, rank, 8));
        let (boxes, steps) = (words(self, rank, 4), words(self, rank, 4));
        for (d, size) in sizes.iter().enumerate() {
            // the driver's first dimension is the fastest-varying one
            let at = (rank - 1 - d) as i32;
            let what = format!("{name}.shape[{d}]");
            let value = self.values.extent(&what, size);
            self.require_range(value, &what, size, [1, 1 << 32]);
            self.values.b.store(value, dims, 8 * at, MemFlags::ALIGNED);
            let what = format!("{name}.strides[{d}]");
            let Some(stride) = tensor.and_then(|tensor| stride_of(tensor, d)) else {
                return self.values.missing_value(what, Type::Ptr);
            };
            let value = self.values.extent(&what, &stride);
            if d + 1 == rank {
                self.require_range(value, &what, &stride, [1, 1]);
            } else {
                self.require_range(value, &what, &stride, [0, (1 << 40) / bytes - 1]);
                let value = self.values.b.binary_imm(BinaryOp::Mul, value, bytes);
                let rest = self.values.b.binary_imm(BinaryOp::And, value, align - 1);
                let aligned = self.values.b.icmp_imm(IntCC::Eq, rest, 0);
                let expected = format!(" bytes, expected a multiple of {align}, as its tensor map demands");
                self.values.require(aligned, value, &format!(", {what} = "), &[Piece::Text(&expected)], None);
                self.values.b.store(value, strides, 8 * (at - 1), MemFlags::ALIGNED);
            }
            let what = format!("box[{d}] of {name}");
            let size = map.box_dims.get(d).cloned().unwrap_or(Dim::Const(1));
            let value = self.values.extent(&what, &size);
            self.require_range(value, &what, &size, [1, 256]);
            if d + 1 == rank && map.interleave == Interleave::None {
                self.require_inner_box(value, &what, bytes, map.swizzle);
            }
            let value = self.values.b.convert(ConvertOp::Truncate, Type::I32, value);
            self.values.b.store(value, boxes, 4 * at, MemFlags::ALIGNED);
            let step = map.element_strides.get(d).copied().unwrap_or(1);
            let step = self.values.b.iconst(Type::I32, i64::from(step));
            self.values.b.store(step, steps, 4 * at, MemFlags::ALIGNED);
        }
        // stack slots are aligned to at most 16 bytes
        let slot = self.values.b.slot(SIZE + ALIGN as u32, 16);
        let start = self.values.b.stack_addr(slot);
        let start = self.values.b.convert(ConvertOp::PtrToInt, Type::I64, start);
        let up = self.values.b.binary_imm(BinaryOp::Add, start, ALIGN - 1);
        let aligned = self.values.b.binary_imm(BinaryOp::And, up, -ALIGN);
        let descriptor = self.values.b.convert(ConvertOp::IntToPtr, Type::Ptr, aligned);
        let interleave = match map.interleave {
            Interleave::None => 0,
            Interleave::Bytes16 => 1,
            Interleave::Bytes32 => 2,
        };
        let swizzle = match map.swizzle {
            Swizzle::None => 0,
            Swizzle::Bytes32 => 1,
            Swizzle::Bytes64 => 2,
            Swizzle::Bytes128 => 3,
        };
        let l2 = match map.l2_promotion {
            L2Promotion::None => 0,
            L2Promotion::Bytes64 => 1,
            L2Promotion::Bytes128 => 2,
            L2Promotion::Bytes256 => 3,
        };
        let [data_type, rank, interleave, swizzle, l2, fill] =
            [data_type, rank as i64, interleave, swizzle, l2, i64::from(map.nan_fill)]
                .map(|number| self.values.b.iconst(Type::I32, number));
        let args = [descriptor, data_type, rank, data, dims, strides, boxes, steps, interleave, swizzle, l2, fill];
        let device = self.inputs.number;
        self.values.b.structured(|c| {
            code.launchable.encode_tensor_map(&args.map(|arg| c.val(arg)), c.val(device), failures);
        });
        descriptor
    }

    /// Requires the innermost dimension of a box to have a byte size that the swizzling mode supports.
    fn require_inner_box(&mut self, value: Value, what: &str, bytes: i64, swizzle: Swizzle) {
        let inner = self.values.b.binary_imm(BinaryOp::Mul, value, bytes);
        let rest = self.values.b.binary_imm(BinaryOp::And, inner, 15);
        let aligned = self.values.b.icmp_imm(IntCC::Eq, rest, 0);
        self.values.require(
            aligned,
            inner,
            &format!(", {what} = "),
            &[Piece::Text(" bytes, expected a multiple of 16")],
            None,
        );
        let max = match swizzle {
            Swizzle::None => return,
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            Swizzle::Bytes128 => 128,
        };
        let fits = self.values.b.icmp_imm(IntCC::ULe, inner, max);
        let expected = format!(" bytes, expected at most the {max} of its swizzling");
        self.values.require(fits, inner, &format!(", {what} = "), &[Piece::Text(&expected)], None);
    }

    /// Requires a value to be in a range, both ends included.
    fn require_range(&mut self, value: Value, what: &str, dim: &Dim, [min, max]: [i64; 2]) {
        if self.values.b.as_int_const(value).is_some_and(|value| (min..=max).contains(&value)) {
            return;
        }
        let above = self.values.b.binary_imm(BinaryOp::Sub, value, min);
        let holds = self.values.b.icmp_imm(IntCC::ULe, above, max - min);
        let behind = format!(" ({}), expected {min} to {max}, as a tensor map demands", self.values.shown(dim));
        self.values.require(holds, value, &format!(", {what} = "), &[Piece::Text(&behind)], None);
    }
}
