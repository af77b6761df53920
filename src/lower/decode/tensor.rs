//! The good path of a tensor argument: contract 1 to 5 and 7, in the shape that callers nearly always use: an
//! `ffi.Tensor` or `DLTensor*` with strides, compact as it stands. Everything else is a doubt for [`super::support::bind`].
//!
//! Conditions come in three steps over several parameters, each of which makes the next one's memory readable: the arguments;
//! the `DLTensor`s; their shapes and strides.

use std::iter;
use std::mem::offset_of;
use std::ptr;

use super::super::fields::{self, dtype_word, pair};
use super::super::kernel::convention::TensorForm;
use super::super::program::SharedId;
use super::super::wrapper::Lowerer;
use super::{HEADER, Place, SeenDevice};
use crate::ir::{BinaryOp, ConvertOp, Hint, IntCC, MemFlags, Type, Value};
use crate::spec::{Dim, Layout, TensorType};
use tvm_ffi_runtime::abi::{DLDevice, DLDeviceType, DLTensor, TypeIndex};

pub(in crate::lower) const DATA: i32 = offset_of!(DLTensor, data) as i32;
pub(in crate::lower) const DEVICE: i32 = offset_of!(DLTensor, device) as i32;
pub(in crate::lower) const NDIM: i32 = offset_of!(DLTensor, ndim) as i32;
pub(in crate::lower) const DTYPE: i32 = offset_of!(DLTensor, dtype) as i32;
pub(in crate::lower) const SHAPE: i32 = offset_of!(DLTensor, shape) as i32;
pub(in crate::lower) const STRIDES: i32 = offset_of!(DLTensor, strides) as i32;
pub(in crate::lower) const BYTE_OFFSET: i32 = offset_of!(DLTensor, byte_offset) as i32;
// Neighbours that are compared in one load.
const _: () = assert!(NDIM + 4 == DTYPE && NDIM % 8 == 0);
const _: () =
    assert!(DEVICE % 8 == 0 && offset_of!(DLDevice, device_type) == 0 && offset_of!(DLDevice, device_id) == 4);

/// A tensor argument between the steps.
pub(super) struct Tensor<'a> {
    ty: &'a TensorType,
    /// Its `DLTensor`.
    base: Value,
    shape: Option<Value>,
    strides: Option<Value>,
}

impl<'a> Tensor<'a> {
    /// Step 1: the argument is an `ffi.Tensor`, whose `DLTensor` follows its header, or a `DLTensor*`.
    pub(super) fn argument(l: &mut Lowerer<'_>, place: Place, ty: &'a TensorType) -> Self {
        let type_index = place.type_index(l);
        let payload = place.payload(l, Type::Ptr);
        let there = l.b.icmp_imm(IntCC::Ne, payload, 0);
        l.conditions.holds(there);
        let (other, join) = (l.b.cold_block(), l.b.block());
        let base = l.b.block_param(join, Type::Ptr);
        let inside = l.b.ptr_add_imm(payload, i64::from(HEADER));
        let is_object = l.b.icmp_imm(IntCC::Eq, type_index, i64::from(TypeIndex::TENSOR.0));
        l.b.branch_with(is_object, (join, &[inside]), (other, &[]), Hint::Likely);
        l.b.switch_to(other);
        let is_pointer = l.b.icmp_imm(IntCC::Eq, type_index, i64::from(TypeIndex::DL_TENSOR_PTR.0));
        l.b.branch_with(is_pointer, (join, &[payload]), (l.doubt, &[]), Hint::Likely);
        l.b.switch_to(join);
        Tensor { ty, base, shape: None, strides: None }
    }

    fn load(&self, l: &mut Lowerer<'_>, ty: Type, offset: i32) -> Value {
        l.b.load(ty, self.base, offset, MemFlags::ALIGNED)
    }

    /// Step 2: ndim, dtype and device, and there are a shape and strides. Of any rank and dtype only what is stated: what else has to be
    /// is `bind`'s to see.
    pub(super) fn header(&mut self, l: &mut Lowerer<'_>) {
        let rank = self.ty.shape.rank();
        match (rank, self.ty.exact_dtype()) {
            (Some(rank), Some(dtype)) => {
                let ndim_and_dtype = self.load(l, Type::I64, NDIM);
                let order = l.b.module().endianness;
                let expected = l.b.i64(pair(order, rank as u32, dtype_word(order, dtype)));
                l.conditions.equal(ndim_and_dtype, expected);
            }
            (Some(rank), None) => {
                let ndim = self.load(l, Type::I32, NDIM);
                let expected = l.b.iconst(Type::I32, rank as i64);
                l.conditions.equal(ndim, expected);
            }
            (None, _) => {}
        }
        self.device(l);
        if rank.is_some_and(|rank| rank > 0) {
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
        let (slot, id) = l.shared_devices.place(&self.ty.device);
        let kind = self.ty.device.kind().map(|kind| kind.0);
        let device = self.load(l, Type::I64, DEVICE);
        let first = l.devices.iter().find(|(known, _)| *known == slot).map(|(_, first)| *first);
        match (kind, id, first) {
            (Some(kind), SharedId::Fixed(id), _) => {
                let order = l.b.module().endianness;
                let expected = l.b.i64(pair(order, kind as u32, id as u32));
                l.conditions.equal(device, expected);
            }
            (_, SharedId::OfSlot, Some(first)) => l.conditions.equal(device, first),
            (kind, id, _) => {
                if let Some(kind) = kind {
                    let device_type = fields::first(&mut l.b, device);
                    let kind = l.b.iconst(Type::I32, i64::from(kind));
                    l.conditions.equal(device_type, kind);
                }
                if id == SharedId::OfSlot {
                    l.devices.push((slot, device));
                }
            }
        }
        // only where somebody asks
        if let Some(order) = l.tensors.iter().position(|known| ptr::eq(*known, self.ty)) {
            let slot = (id == SharedId::OfSlot).then_some(slot);
            let has_stream = self.ty.device.kind() != Some(DLDeviceType::CPU);
            l.seen_devices.push(SeenDevice { order, slot, has_stream, device });
        }
    }

    /// Step 3: sizes, strides, the data pointer and its alignment. Binds the symbols. Gives what the kernel takes.
    pub(super) fn contents(self, l: &mut Lowerer<'_>) -> Vec<Value> {
        let dims = self.ty.shape.dims().unwrap_or_default();
        let numbers = |l: &mut Lowerer<'_>, base: Option<Value>| -> Vec<Value> {
            let Some(base) = base else { return Vec::new() };
            (0..dims.len()).map(|d| l.b.load(Type::I64, base, 8 * d as i32, MemFlags::ALIGNED)).collect()
        };
        let shape = numbers(l, self.shape);
        for (dim, size) in dims.iter().zip(&shape) {
            l.match_dim(dim, *size, true);
        }
        let checked = dims.iter().any(|dim| !matches!(dim, Dim::Const(_)));
        let compact = l.products(&shape, checked);
        let strides = match &self.ty.layout {
            Layout::Contiguous => {
                let strides = numbers(l, self.strides);
                for (stride, expected) in strides.iter().zip(compact) {
                    l.conditions.equal(*stride, expected);
                }
                strides
            }
            Layout::Strides(wanted) => {
                let strides = numbers(l, self.strides);
                for (dim, stride) in wanted.iter().zip(&strides) {
                    l.match_dim(dim, *stride, false);
                }
                strides
            }
            Layout::Any => Vec::new(),
        };
        match l.convention.form(self.ty) {
            TensorForm::Data => {
                let (data, byte_offset) = self.data(l);
                iter::once(data).chain(byte_offset).collect()
            }
            TensorForm::Descriptor => {
                self.descriptor(l);
                vec![self.base]
            }
            TensorForm::MemRef => {
                let (data, _) = self.data(l);
                let zero = l.b.i64(0);
                let strides = if self.ty.layout == Layout::Any { numbers(l, self.strides) } else { strides };
                [data, data, zero].into_iter().chain(shape).chain(strides).collect()
            }
        }
    }

    /// Contract 2: the address of the first element, which is there and aligned.
    fn data(&self, l: &mut Lowerer<'_>) -> (Value, Option<Value>) {
        let data = self.load(l, Type::Ptr, DATA);
        let byte_offset = self.load(l, Type::I64, BYTE_OFFSET);
        let there = l.b.icmp_imm(IntCC::Ne, data, 0);
        l.conditions.holds(there);
        let opaque = self.ty.is_opaque();
        let start = if opaque { data } else { l.b.ptr_add(data, byte_offset) };
        let aligned = if opaque { byte_offset } else { start };
        self.aligned(l, aligned);
        (start, opaque.then_some(byte_offset))
    }

    fn aligned(&self, l: &mut Lowerer<'_>, address: Value) {
        let align = self.ty.alignment();
        if align > 1 {
            let address = match l.b.type_of(address) {
                Type::Ptr => l.b.convert(ConvertOp::PtrToInt, Type::I64, address),
                _ => address,
            };
            let mask = l.b.i64(i64::from(align) - 1);
            let rest = l.b.binary(BinaryOp::And, address, mask);
            l.conditions.zero(rest);
        }
    }

    /// What the kernel is to find in a `DLTensor` of which it gets the address. The good path leaves it as it is, so that there is no
    /// offset, but for opaque handles.
    fn descriptor(&self, l: &mut Lowerer<'_>) {
        let data = self.load(l, Type::Ptr, DATA);
        let byte_offset = self.load(l, Type::I64, BYTE_OFFSET);
        let there = l.b.icmp_imm(IntCC::Ne, data, 0);
        l.conditions.holds(there);
        if self.ty.is_opaque() {
            self.aligned(l, byte_offset);
        } else if self.ty.device.kind().is_some() {
            l.conditions.zero(byte_offset);
            self.aligned(l, data);
        }
        // else the offset stays where `data` is a handle, and `bind` has seen to it
    }
}
