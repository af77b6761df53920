//! The good path of a tensor argument: contract 1 to 5 and 7, in the shape that callers nearly always use: an
//! `ffi.Tensor` or `DLTensor*` with strides, compact as it stands. Everything else is a doubt for [`super::support::bind`].
//!
//! No load here may count as of memory that doesn't change: the second time around, it is what `bind` has just written.
//!
//! Conditions come in three steps over all parameters, each of which makes the next one's memory readable: the arguments;
//! the `DLTensor`s; their shapes and strides.

use std::mem::offset_of;

use super::program::dtype_word;
use super::wrapper::{Bound, Lowerer};
use crate::ir::{BinaryOp, ConvertOp, Hint, IntCC, MemFlags, Type, Value};
use crate::spec::{Device, Dim, Layout, TensorType};
use tvm_ffi_runtime::abi::{DLDevice, DLTensor, TVMFFIObject, TypeIndex};

pub(super) const DATA: i32 = offset_of!(DLTensor, data) as i32;
pub(super) const DEVICE: i32 = offset_of!(DLTensor, device) as i32;
pub(super) const NDIM: i32 = offset_of!(DLTensor, ndim) as i32;
pub(super) const DTYPE: i32 = offset_of!(DLTensor, dtype) as i32;
pub(super) const SHAPE: i32 = offset_of!(DLTensor, shape) as i32;
pub(super) const STRIDES: i32 = offset_of!(DLTensor, strides) as i32;
pub(super) const BYTE_OFFSET: i32 = offset_of!(DLTensor, byte_offset) as i32;
/// An object's `DLTensor` follows its header (c_api.h, kTVMFFITensor).
const HEADER: i64 = size_of::<TVMFFIObject>() as i64;

// Neighbours that are compared in one load.
const _: () = assert!(NDIM + 4 == DTYPE && NDIM % 8 == 0);
const _: () =
    assert!(DEVICE % 8 == 0 && offset_of!(DLDevice, device_type) == 0 && offset_of!(DLDevice, device_id) == 4);

/// What the checks leave of a tensor.
pub(super) struct TensorVars {
    /// Address of the first element, `byte_offset` added; on a device with opaque handles the bare handle.
    pub data: Value,
    /// The offset in bytes, where `data` is an opaque handle.
    pub byte_offset: Option<Value>,
    /// Sizes, `I64`.
    pub shape: Vec<Value>,
    /// Strides in elements, `I64`, where the signature states them.
    pub strides: Option<Vec<Value>>,
}

/// A tensor argument between the steps.
pub(super) struct Tensor<'a> {
    ty: &'a TensorType,
    /// Where it has to be, by what the whole signature says.
    device: Device,
    /// Its `DLTensor`.
    base: Value,
    shape: Option<Value>,
    strides: Option<Value>,
}

impl<'a> Tensor<'a> {
    /// Step 1: the argument is an `ffi.Tensor`, whose `DLTensor` follows its header, or a `DLTensor*`.
    pub(super) fn argument(l: &mut Lowerer<'_>, arg: usize, ty: &'a TensorType, device: Device) -> Self {
        let type_index = l.type_index(arg);
        let payload = l.payload(arg, Type::Ptr);
        let there = l.b.icmp_imm(IntCC::Ne, payload, 0);
        l.conditions.holds(there);
        let (other, join) = (l.b.cold_block(), l.b.block());
        let base = l.b.block_param(join, Type::Ptr);
        let inside = l.b.ptr_add_imm(payload, HEADER);
        let is_object = l.b.icmp_imm(IntCC::Eq, type_index, i64::from(TypeIndex::TENSOR.0));
        l.b.branch_with(is_object, (join, &[inside]), (other, &[]), Hint::Likely);
        l.b.switch_to(other);
        let is_pointer = l.b.icmp_imm(IntCC::Eq, type_index, i64::from(TypeIndex::DL_TENSOR_PTR.0));
        l.b.branch_with(is_pointer, (join, &[payload]), (l.doubt, &[]), Hint::Likely);
        l.b.switch_to(join);
        Tensor { ty, device, base, shape: None, strides: None }
    }

    fn load(&self, l: &mut Lowerer<'_>, ty: Type, offset: i32) -> Value {
        l.b.load(ty, self.base, offset, MemFlags::ALIGNED)
    }

    /// Step 2: ndim, dtype and device, and there are a shape and strides.
    pub(super) fn header(&mut self, l: &mut Lowerer<'_>) {
        let rank = self.ty.shape.len();
        let ndim_and_dtype = self.load(l, Type::I64, NDIM);
        let expected = l.b.i64(i64::from(dtype_word(self.ty.dtype)) << 32 | rank as i64);
        l.conditions.equal(ndim_and_dtype, expected);
        self.device(l);
        if rank > 0 {
            let (shape, strides) = (self.load(l, Type::Ptr, SHAPE), self.load(l, Type::Ptr, STRIDES));
            for pointer in [shape, strides] {
                let there = l.b.icmp_imm(IntCC::Ne, pointer, 0);
                l.conditions.holds(there);
            }
            (self.shape, self.strides) = (Some(shape), Some(strides));
        }
    }

    /// The kind of device and its id in one comparison, but for the first tensor that may be on any one of its kind.
    fn device(&self, l: &mut Lowerer<'_>) {
        let wanted = self.device;
        let code = i64::from(wanted.device_type.0);
        let device = self.load(l, Type::I64, DEVICE);
        let first = l.devices.iter().find(|(device_type, _)| *device_type == wanted.device_type);
        match (wanted.id, first) {
            (Some(id), _) => {
                let expected = l.b.i64(i64::from(id) << 32 | code);
                l.conditions.equal(device, expected);
            }
            (None, Some((_, first))) => l.conditions.equal(device, *first),
            (None, None) => {
                let device_type = l.b.convert(ConvertOp::Truncate, Type::I32, device);
                let code = l.b.iconst(Type::I32, code);
                l.conditions.equal(device_type, code);
                l.devices.push((wanted.device_type, device));
            }
        }
    }

    /// Step 3: sizes, strides, the data pointer and its alignment. Binds the symbols.
    pub(super) fn contents(self, l: &mut Lowerer<'_>) -> TensorVars {
        let numbers = |l: &mut Lowerer<'_>, base: Option<Value>| -> Vec<Value> {
            let Some(base) = base else { return Vec::new() };
            (0..self.ty.shape.len()).map(|d| l.b.load(Type::I64, base, 8 * d as i32, MemFlags::ALIGNED)).collect()
        };
        let shape = numbers(l, self.shape);
        for (dim, size) in self.ty.shape.iter().zip(&shape) {
            self.match_dim(l, dim, *size, true);
        }
        let compact = self.products(l, &shape);
        let strides = numbers(l, self.strides);
        let strides = match &self.ty.layout {
            Layout::Contiguous => {
                for (stride, expected) in strides.iter().zip(compact) {
                    l.conditions.equal(*stride, expected);
                }
                None
            }
            Layout::Strides(wanted) => {
                for (dim, stride) in wanted.iter().zip(&strides) {
                    self.match_dim(l, dim, *stride, false);
                }
                Some(strides)
            }
        };
        let (data, byte_offset) = self.data(l);
        TensorVars { data, byte_offset, shape, strides }
    }

    /// Compares with a constant or a bound symbol; else binds the symbol. A size that nothing vouches for may be negative.
    fn match_dim(&self, l: &mut Lowerer<'_>, dim: &Dim, got: Value, is_size: bool) {
        let expected = match dim {
            Dim::Const(expected) => Some((l.b.i64(*expected), true)),
            Dim::Symbol(name) => {
                let known = l.bound.iter().find(|b| b.name == *name).map(|b| (b.value, b.is_size));
                if known.is_none() {
                    l.bound.push(Bound { name: name.clone(), value: got, is_size });
                }
                known
            }
        };
        if let Some((expected, _)) = expected {
            l.conditions.equal(got, expected);
        }
        if is_size && !expected.is_some_and(|(_, is_size)| is_size) {
            l.conditions.non_negative(got);
        }
    }

    /// Compact strides: products of trailing sizes. Contract 4: none of them, nor the number of elements, overflows. A product of
    /// factors that are not negative fits where its upper half is 0 and its lower half not negative.
    fn products(&self, l: &mut Lowerer<'_>, shape: &[Value]) -> Vec<Value> {
        let checked = self.ty.shape.iter().any(|d| matches!(d, Dim::Symbol(_)));
        let mut strides = Vec::new();
        let mut product = None;
        for size in shape.iter().rev() {
            strides.push(product.unwrap_or_else(|| l.b.i64(1)));
            product = Some(match product {
                None => *size,
                Some(before) => {
                    let next = l.b.binary(BinaryOp::Mul, before, *size);
                    if checked {
                        let upper = l.b.binary(BinaryOp::SMulHi, before, *size);
                        l.conditions.zero(upper);
                        l.conditions.non_negative(next);
                    }
                    next
                }
            });
        }
        strides.reverse();
        strides
    }

    /// Contract 2: the address of the first element, which is there and aligned.
    fn data(&self, l: &mut Lowerer<'_>) -> (Value, Option<Value>) {
        let data = self.load(l, Type::Ptr, DATA);
        let byte_offset = self.load(l, Type::I64, BYTE_OFFSET);
        let there = l.b.icmp_imm(IntCC::Ne, data, 0);
        l.conditions.holds(there);
        let opaque = self.ty.is_opaque();
        let start = if opaque { data } else { l.b.ptr_add(data, byte_offset) };
        let align = self.ty.alignment();
        if align > 1 {
            let address = if opaque { byte_offset } else { l.b.convert(ConvertOp::PtrToInt, Type::I64, start) };
            let mask = l.b.i64(i64::from(align) - 1);
            let rest = l.b.binary(BinaryOp::And, address, mask);
            l.conditions.zero(rest);
        }
        (start, opaque.then_some(byte_offset))
    }
}
