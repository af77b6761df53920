//! TMA descriptors: `CUtensorMap`s of tensor parameters, encoded by the driver (`cuTensorMapEncodeTiled`, cuda.h).

use super::emitter::Emitter;
use crate::ir::{BinaryOp, ConvertOp, IntCC, MemFlags, Type, Value};
use crate::lower::protocol::Piece;
use crate::spec::{Dim, Interleave, L2Promotion, Swizzle, TensorMap};
use tvm_ffi_runtime::abi::{DLDataType, kDLBfloat, kDLFloat, kDLInt, kDLUInt};

/// The bytes of a `CUtensorMap`, and what it is aligned to.
const SIZE: u32 = 128;
const ALIGN: i64 = 64;

impl Emitter<'_, '_> {
    /// The address of the descriptor of a tensor parameter.
    pub(super) fn tensor_map(&mut self, map: &TensorMap) -> Value {
        let name = &map.tensor;
        let parts = self.tensor(name).and_then(|tensor| {
            let dtype = tensor.exact_dtype()?;
            Some((tensor.shape.dims()?.to_vec(), dtype, data_type(dtype)?))
        });
        let (Some((sizes, dtype, data_type)), Some((_, data)), Some(code), Some(failures)) =
            (parts, self.named(name), self.prepared.code.on_device(), self.failures)
        else {
            return self.missing_value(format!("the tensor map of {name}"), Type::Ptr);
        };
        let bytes = i64::from(dtype.bits) * i64::from(dtype.lanes) / 8;
        let address = self.b.convert(ConvertOp::PtrToInt, Type::I64, data);
        let align = if map.interleave == Interleave::Bytes32 { 32 } else { 16 };
        let rest = self.b.binary_imm(BinaryOp::And, address, align - 1);
        let aligned = self.b.icmp_imm(IntCC::Eq, rest, 0);
        let expected = format!(", expected a multiple of {align}, as its tensor map demands");
        self.require(aligned, address, &format!(", the address of {name} = "), &[Piece::Text(&expected)], None);
        let rank = sizes.len();
        let words = |emitter: &mut Self, count: usize, bytes: u32| {
            let slot = emitter.b.slot(bytes * count.max(1) as u32, 8);
            emitter.b.stack_addr(slot)
        };
        let (dims, strides) = (words(self, rank, 8), words(self, rank, 8));
        let (boxes, steps) = (words(self, rank, 4), words(self, rank, 4));
        for (d, size) in sizes.iter().enumerate() {
            // the driver's first dimension is the fastest
            let at = (rank - 1 - d) as i32;
            let what = format!("{name}.shape[{d}]");
            let value = self.extent(&what, size);
            self.require_range(value, &what, size, [1, 1 << 32]);
            self.b.store(value, dims, 8 * at, MemFlags::ALIGNED);
            let what = format!("{name}.strides[{d}]");
            let Some(stride) = self.stride(name, d) else {
                return self.missing_value(what, Type::Ptr);
            };
            let value = self.extent(&what, &stride);
            if d + 1 == rank {
                self.require_range(value, &what, &stride, [1, 1]);
            } else {
                self.require_range(value, &what, &stride, [0, (1 << 40) / bytes - 1]);
                let value = self.b.binary_imm(BinaryOp::Mul, value, bytes);
                let rest = self.b.binary_imm(BinaryOp::And, value, align - 1);
                let aligned = self.b.icmp_imm(IntCC::Eq, rest, 0);
                let expected = format!(" bytes, expected a multiple of {align}, as its tensor map demands");
                self.require(aligned, value, &format!(", {what} = "), &[Piece::Text(&expected)], None);
                self.b.store(value, strides, 8 * (at - 1), MemFlags::ALIGNED);
            }
            let what = format!("box[{d}] of {name}");
            let size = map.box_dims.get(d).cloned().unwrap_or(Dim::Const(1));
            let value = self.extent(&what, &size);
            self.require_range(value, &what, &size, [1, 256]);
            if d + 1 == rank && map.interleave == Interleave::None {
                self.require_inner_box(value, &what, bytes, map.swizzle);
            }
            let value = self.b.convert(ConvertOp::Truncate, Type::I32, value);
            self.b.store(value, boxes, 4 * at, MemFlags::ALIGNED);
            let step = map.element_strides.get(d).copied().unwrap_or(1);
            let step = self.b.iconst(Type::I32, i64::from(step));
            self.b.store(step, steps, 4 * at, MemFlags::ALIGNED);
        }
        // a frame is aligned to 16 bytes
        let slot = self.b.slot(SIZE + ALIGN as u32, 16);
        let start = self.b.stack_addr(slot);
        let start = self.b.convert(ConvertOp::PtrToInt, Type::I64, start);
        let up = self.b.binary_imm(BinaryOp::Add, start, ALIGN - 1);
        let aligned = self.b.binary_imm(BinaryOp::And, up, -ALIGN);
        let descriptor = self.b.convert(ConvertOp::IntToPtr, Type::Ptr, aligned);
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
                .map(|number| self.b.iconst(Type::I32, number));
        let args = [descriptor, data_type, rank, data, dims, strides, boxes, steps, interleave, swizzle, l2, fill];
        let device = self.inputs.number;
        code.launchable.encode_tensor_map(self.b, &args, device, failures);
        descriptor
    }

    /// Requires the bytes of a box's innermost dimension to be what the swizzling takes.
    fn require_inner_box(&mut self, value: Value, what: &str, bytes: i64, swizzle: Swizzle) {
        let inner = self.b.binary_imm(BinaryOp::Mul, value, bytes);
        let rest = self.b.binary_imm(BinaryOp::And, inner, 15);
        let aligned = self.b.icmp_imm(IntCC::Eq, rest, 0);
        self.require(
            aligned,
            inner,
            &format!(", {what} = "),
            &[Piece::Text(" bytes, expected a multiple of 16")],
            None,
        );
        let most = match swizzle {
            Swizzle::None => return,
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            Swizzle::Bytes128 => 128,
        };
        let fits = self.b.icmp_imm(IntCC::ULe, inner, most);
        let expected = format!(" bytes, expected at most the {most} of its swizzling");
        self.require(fits, inner, &format!(", {what} = "), &[Piece::Text(&expected)], None);
    }

    /// Requires a value to be in a range, both ends included.
    fn require_range(&mut self, value: Value, what: &str, dim: &Dim, [least, most]: [i64; 2]) {
        if self.b.as_int_const(value).is_some_and(|value| (least..=most).contains(&value)) {
            return;
        }
        let above = self.b.binary_imm(BinaryOp::Sub, value, least);
        let holds = self.b.icmp_imm(IntCC::ULe, above, most - least);
        let behind = format!(" ({}), expected {least} to {most}, as a tensor map demands", self.shown(dim));
        self.require(holds, value, &format!(", {what} = "), &[Piece::Text(&behind)], None);
    }
}

/// The `CUtensorMapDataType` of elements; `None` where there is none.
pub(super) fn data_type(dtype: DLDataType) -> Option<i64> {
    match (dtype.code, dtype.bits, dtype.lanes) {
        (code, 8, 1) if code == kDLUInt || code == kDLInt => Some(0),
        (code, 16, 1) if code == kDLUInt || code == kDLInt => Some(1),
        (code, 32, 1) if code == kDLUInt => Some(2),
        (code, 32, 1) if code == kDLInt => Some(3),
        (code, 64, 1) if code == kDLUInt => Some(4),
        (code, 64, 1) if code == kDLInt => Some(5),
        (code, 16, 1) if code == kDLFloat => Some(6),
        (code, 32, 1) if code == kDLFloat => Some(7),
        (code, 64, 1) if code == kDLFloat => Some(8),
        (code, 16, 1) if code == kDLBfloat => Some(9),
        // floats of 8 bits are copied as bytes
        (_, 8, 1) => Some(0),
        _ => None,
    }
}
