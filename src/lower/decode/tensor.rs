//! The good path of a tensor argument: contract 1 to 5 and 7, in the shape that callers nearly always use: an
//! `ffi.Tensor` or `DLTensor*` with strides, compact as it stands. Everything else is a doubt for [`super::support::bind`].
//!

use std::iter;
use std::mem::offset_of;
use std::ptr;

use super::super::fields::{self, dtype_word, pair};
use super::super::kernel::convention::TensorForm;
use super::super::program::SharedId;
use super::super::wrapper::{Lowerer, TYPE_INDEX};
use super::{HEADER, Place, SeenDevice};
use crate::ir::{ConvertOp, Hint, IntCC, MemFlags, Type, Value};
use crate::spec::{Layout, TensorType};
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

/// From so many dimensions on, a shape is compared with an equal one as a whole.
const SAME: usize = 4;
const _: () = assert!(8 * crate::spec::MAX_RANK as u32 <= crate::ir::MAX_SAME_BYTES);

/// One of the numbers of a shape or of strides.
fn number(l: &mut Lowerer<'_>, base: Value, d: usize) -> Value {
    l.b.load(Type::I64, base, 8 * d as i32, MemFlags::ALIGNED)
}

/// A `DLTensor` that is there.
struct Tensor<'a> {
    ty: &'a TensorType,
    /// Its address, less the header of an object: as an `ffi.Tensor` is passed.
    base: Value,
}

/// Checks an argument, binds the symbols, and gives what the kernel takes.
pub(super) fn decode(l: &mut Lowerer<'_>, place: Place, ty: &TensorType) -> Vec<Value> {
    let tensor = Tensor::argument(l, place, ty);
    tensor.header(l);
    tensor.contents(l)
}

impl<'a> Tensor<'a> {
    /// The argument is an `ffi.Tensor`, whose `DLTensor` follows its header, or a `DLTensor*`.
    fn argument(l: &mut Lowerer<'_>, place: Place, ty: &'a TensorType) -> Self {
        let type_index = place.type_index(l);
        let (other, outside, join) = (l.b.cold_block(), l.b.cold_block(), l.b.block());
        let base = l.b.block_param(join, Type::Ptr);
        let is_object = l.b.icmp_imm(IntCC::Eq, type_index, i64::from(TypeIndex::TENSOR.0));
        let inside = l.b.block();
        l.b.branch(is_object, inside, other, Hint::Likely);
        l.b.switch_to(inside);
        let payload = place.payload(l, Type::Ptr);
        l.require_there(payload);
        l.b.jump(join, &[payload]);

        l.b.switch_to(other);
        // loaded again, and wider, so that the usual path compares in memory
        let both = l.b.load(Type::I64, place.base, place.offset + TYPE_INDEX, MemFlags::ALIGNED);
        let type_index = fields::first(&mut l.b, both);
        let is_pointer = l.b.icmp_imm(IntCC::Eq, type_index, i64::from(TypeIndex::DL_TENSOR_PTR.0));
        l.b.branch(is_pointer, outside, l.doubt, Hint::Likely);
        l.b.switch_to(outside);
        let payload = place.payload(l, Type::Ptr);
        let there = l.b.icmp_imm(IntCC::Ne, payload, 0);
        let shift = l.b.cold_block();
        l.b.branch(there, shift, l.doubt, Hint::Likely);
        l.b.switch_to(shift);
        let shifted = l.b.ptr_add_imm(payload, -i64::from(HEADER));
        l.b.jump(join, &[shifted]);

        l.b.switch_to(join);
        Tensor { ty, base }
    }

    fn load(&self, l: &mut Lowerer<'_>, ty: Type, offset: i32) -> Value {
        l.b.load(ty, self.base, HEADER + offset, MemFlags::ALIGNED)
    }

    /// ndim, dtype and device. Of any rank and dtype only what is stated: what else has to be is `bind`'s to see.
    fn header(&self, l: &mut Lowerer<'_>) {
        match (self.ty.shape.rank(), self.ty.exact_dtype()) {
            (Some(rank), Some(dtype)) => {
                let ndim_and_dtype = self.load(l, Type::I64, NDIM);
                let order = l.b.module().endianness;
                let expected = pair(order, rank as u32, dtype_word(order, dtype));
                // a value at hand takes less than such a number
                let known = l.kinds.iter().find(|(known, _)| *known == expected).map(|(_, value)| *value);
                let wanted = known.unwrap_or_else(|| l.b.i64(expected));
                l.require_equal(wanted, ndim_and_dtype);
                if known.is_none() {
                    l.kinds.push((expected, ndim_and_dtype));
                }
            }
            (Some(rank), None) => {
                let ndim = self.load(l, Type::I32, NDIM);
                let expected = l.b.iconst(Type::I32, rank as i64);
                l.require_equal(ndim, expected);
            }
            (None, _) => {}
        }
        self.device(l);
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
                l.require_equal(expected, device);
            }
            (_, SharedId::OfSlot, Some(first)) => l.require_equal(first, device),
            (kind, id, _) => {
                if let Some(kind) = kind {
                    let device_type = fields::first(&mut l.b, device);
                    let kind = l.b.iconst(Type::I32, i64::from(kind));
                    l.require_equal(device_type, kind);
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

    /// Where the numbers of the shape or the strides are.
    fn numbers(&self, l: &mut Lowerer<'_>, field: i32) -> Value {
        let base = self.load(l, Type::Ptr, field);
        l.require_there(base);
        base
    }

    /// Sizes and strides; binds the symbols. That sizes fit, and that strides are there, is required also where nothing is compared
    /// with them. Gives both as far as they are of use to a kernel.
    fn dims(&self, l: &mut Lowerer<'_>) -> (Vec<Value>, Vec<Value>) {
        let dims = self.ty.shape.dims().unwrap_or_default();
        if dims.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let shape = self.numbers(l, SHAPE);
        let known = l.known.iter().position(|known| known.dims == dims);
        let known = match known {
            // as the whole of another tensor's shape, where that takes less than one by one
            Some(known) if dims.len() >= SAME => {
                let same = l.b.same_bytes(l.known[known].shape, shape, 8 * dims.len() as u32);
                l.require(same);
                known
            }
            _ => {
                let sizes = dims.iter().enumerate().map(|(d, dim)| {
                    let size = number(l, shape, d);
                    l.match_dim(dim, size, true);
                    l.matched(dim, size)
                });
                let sizes = sizes.collect();
                known.unwrap_or_else(|| l.know(dims, sizes, shape))
            }
        };
        let strides = self.numbers(l, STRIDES);
        match (&self.ty.layout, l.known[known].strides) {
            (Layout::Contiguous, Some(others)) if dims.len() >= SAME => {
                let same = l.b.same_bytes(others, strides, 8 * dims.len() as u32);
                l.require(same);
            }
            (Layout::Contiguous, _) => {
                for d in 0..dims.len() {
                    let stride = number(l, strides, d);
                    l.require_equal(l.known[known].compact[d], stride);
                }
                l.known[known].strides = Some(strides);
            }
            (Layout::Strides(wanted), _) => {
                for (d, dim) in wanted.iter().enumerate() {
                    let stride = number(l, strides, d);
                    l.match_dim(dim, stride, false);
                }
            }
            (Layout::Any, _) => {}
        }
        let sizes = l.known[known].sizes.clone();
        let strides = match self.ty.layout {
            Layout::Contiguous => l.known[known].compact.clone(),
            _ if l.convention.form(self.ty) == TensorForm::MemRef => {
                (0..dims.len()).map(|d| number(l, strides, d)).collect()
            }
            _ => Vec::new(),
        };
        (sizes, strides)
    }

    /// Sizes, strides, the data pointer and its alignment. Gives what the kernel takes.
    fn contents(self, l: &mut Lowerer<'_>) -> Vec<Value> {
        let (shape, strides) = self.dims(l);
        match l.convention.form(self.ty) {
            TensorForm::Data => {
                let (data, byte_offset) = self.data(l);
                iter::once(data).chain(byte_offset).collect()
            }
            TensorForm::Descriptor => {
                self.descriptor(l);
                vec![l.b.ptr_add_imm(self.base, i64::from(HEADER))]
            }
            TensorForm::MemRef => {
                let (data, _) = self.data(l);
                let zero = l.b.i64(0);
                [data, data, zero].into_iter().chain(shape).chain(strides).collect()
            }
        }
    }

    /// Contract 2: the address of the first element, which is there and aligned.
    fn data(&self, l: &mut Lowerer<'_>) -> (Value, Option<Value>) {
        let data = self.load(l, Type::Ptr, DATA);
        l.require_there(data);
        let byte_offset = self.load(l, Type::I64, BYTE_OFFSET);
        let opaque = self.ty.is_opaque();
        let start = if opaque { data } else { l.b.ptr_add(data, byte_offset) };
        let aligned = if opaque { byte_offset } else { start };
        self.aligned(l, aligned);
        (start, opaque.then_some(byte_offset))
    }

    fn aligned(&self, l: &mut Lowerer<'_>, address: Value) {
        let address = match l.b.type_of(address) {
            Type::Ptr => l.b.convert(ConvertOp::PtrToInt, Type::I64, address),
            _ => address,
        };
        l.require_multiple(address, self.ty.alignment());
    }

    /// What the kernel is to find in a `DLTensor` of which it gets the address. The good path leaves it as it is, so that there is no
    /// offset, but for opaque handles.
    fn descriptor(&self, l: &mut Lowerer<'_>) {
        let data = self.load(l, Type::Ptr, DATA);
        l.require_there(data);
        let byte_offset = self.load(l, Type::I64, BYTE_OFFSET);
        if self.ty.is_opaque() {
            self.aligned(l, byte_offset);
        } else if self.ty.device.kind().is_some() {
            l.require_zero(byte_offset);
            self.aligned(l, data);
        }
        // else the offset stays where `data` is a handle, and `bind` has seen to it
    }
}
