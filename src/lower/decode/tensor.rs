//! The good path of a tensor argument: contract 1 to 5 and 7, in the shape that callers nearly always use: an
//! `ffi.Tensor` or `DLTensor*` with strides, compact as it stands. Everything else is a doubt for [`super::support::bind`].
//!

use std::mem::offset_of;
use std::ptr;

use super::super::fields::{self, dtype_word, pair};
use super::super::kernel::convention::TensorForm;
use super::super::program::SharedId;
use super::super::wrapper::{Lowerer, TYPE_INDEX};
use super::{HEADER, Place, SeenDevice};
use crate::ir::{ConvertOp, Hint, IntCC, MAX_SAME_BYTES, MemFlags, Type, Value};
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

/// So many arguments are asked together whether they are there: all of them are at hand then.
pub(super) const TOGETHER: usize = 2;

/// From so many dimensions on, a shape is compared with an equal one as a whole.
const SAME: usize = 4;
const _: () = assert!(8 * crate::spec::MAX_RANK as u32 <= MAX_SAME_BYTES);

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

/// Sizes and strides, as far as they are of use to a kernel.
type Dims = (Vec<Value>, Vec<Value>);

/// Addresses of numbers that have to be the same, and how many they are.
type Same = (Value, Value, usize);

/// Checks arguments, binds the symbols, and gives what the kernel takes for each. What is asked of all of them alike is asked together,
/// in an order that needs few registers.
pub(super) fn decode(l: &mut Lowerer<'_>, arguments: &[(Place, &TensorType)]) -> Vec<Vec<Value>> {
    let tensors: Vec<_> = arguments.iter().map(|(place, ty)| Tensor::argument(l, *place, ty)).collect();
    let bases: Vec<_> = tensors.iter().map(|tensor| tensor.base).collect();
    l.require_all_there(&bases);
    let data: Vec<_> = tensors.iter().map(|tensor| tensor.load(l, Type::Ptr, DATA)).collect();
    l.require_all_there(&data);
    let data: Vec<_> = tensors.iter().zip(data).map(|(tensor, data)| tensor.data(l, data)).collect();
    l.settle_bits();
    for tensor in &tensors {
        tensor.header(l);
    }
    let mut same = Vec::new();
    let dims: Vec<_> = tensors.iter().map(|tensor| tensor.dims(l, &mut same)).collect();
    // those that are compared with one and the same follow one another
    same.sort_by_key(|(with, _, count)| (*count, *with));
    for some in same.chunk_by(|x, y| x.2 == y.2) {
        let bytes = 8 * some[0].2 as u32;
        for some in some.chunks((MAX_SAME_BYTES / bytes) as usize) {
            l.require_same(some.iter().map(|(x, y, _)| (*x, *y)).collect(), bytes);
        }
    }
    let values = tensors.iter().zip(data).zip(dims);
    values.map(|((tensor, data), dims)| tensor.values(l, data, dims)).collect()
}

impl<'a> Tensor<'a> {
    /// The argument is an `ffi.Tensor`, whose `DLTensor` follows its header, or a `DLTensor*`. It may still be NULL.
    fn argument(l: &mut Lowerer<'_>, place: Place, ty: &'a TensorType) -> Self {
        let payload = place.payload(l, Type::Ptr);
        let type_index = place.type_index(l);
        let (other, join) = (l.b.cold_block(), l.b.block());
        let base = l.b.block_param(join, Type::Ptr);
        let is_object = l.b.icmp_imm(IntCC::Eq, type_index, i64::from(TypeIndex::TENSOR.0));
        l.b.branch_with(is_object, (join, &[payload]), (other, &[]), Hint::Likely);

        l.b.switch_to(other);
        // loaded again, and wider, so that the usual path compares in memory
        let both = l.b.load(Type::I64, place.base, place.offset + TYPE_INDEX, MemFlags::ALIGNED);
        let type_index = fields::first(&mut l.b, both);
        let there = l.b.icmp_imm(IntCC::Ne, payload, 0);
        let shifted = l.b.ptr_add_imm(payload, -i64::from(HEADER));
        let shifted = l.b.select(there, shifted, payload);
        let is_pointer = l.b.icmp_imm(IntCC::Eq, type_index, i64::from(TypeIndex::DL_TENSOR_PTR.0));
        l.b.branch_with(is_pointer, (join, &[shifted]), (l.doubt, &[]), Hint::Likely);

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

    /// Sizes and strides; binds the symbols. That sizes fit, and that strides are there, is required also where nothing is compared
    /// with them. Some are left to be compared as blocks.
    fn dims(&self, l: &mut Lowerer<'_>, same: &mut Vec<Same>) -> Dims {
        let dims = self.ty.shape.dims().unwrap_or_default();
        if dims.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let (shape, strides) = (self.load(l, Type::Ptr, SHAPE), self.load(l, Type::Ptr, STRIDES));
        l.require_all_there(&[shape, strides]);
        let known = l.known.iter().position(|known| known.dims == dims);
        let known = match known {
            // as the whole of another tensor's shape, where that takes less than one by one
            Some(known) if dims.len() >= SAME => {
                same.push((l.known[known].shape, shape, dims.len()));
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
        match (&self.ty.layout, l.known[known].strides) {
            (Layout::Contiguous, Some(others)) if dims.len() >= SAME => same.push((others, strides, dims.len())),
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

    /// Contract 2: the address of the first element, which is aligned, and the offset that is not in it. What a `DLTensor` says, of which
    /// a kernel gets the address, the good path leaves as it is, so that there is no offset, but for opaque handles.
    fn data(&self, l: &mut Lowerer<'_>, data: Value) -> (Value, Value) {
        let byte_offset = self.load(l, Type::I64, BYTE_OFFSET);
        if self.ty.is_opaque() {
            l.require_multiple(byte_offset, self.ty.alignment());
            return (data, byte_offset);
        }
        let start = match l.convention.form(self.ty) {
            // the offset stays where `data` may be a handle, and `bind` has seen to it
            TensorForm::Descriptor if self.ty.device.kind().is_none() => return (data, byte_offset),
            TensorForm::Descriptor => {
                l.require_zero(byte_offset);
                data
            }
            TensorForm::Data | TensorForm::MemRef => l.b.ptr_add(data, byte_offset),
        };
        let address = l.b.convert(ConvertOp::PtrToInt, Type::I64, start);
        l.require_multiple(address, self.ty.alignment());
        (start, byte_offset)
    }

    /// What the kernel takes.
    fn values(&self, l: &mut Lowerer<'_>, (start, byte_offset): (Value, Value), (sizes, strides): Dims) -> Vec<Value> {
        match l.convention.form(self.ty) {
            TensorForm::Descriptor => vec![l.b.ptr_add_imm(self.base, i64::from(HEADER))],
            TensorForm::Data if self.ty.is_opaque() => vec![start, byte_offset],
            TensorForm::Data => vec![start],
            TensorForm::MemRef => {
                let zero = l.b.i64(0);
                [start, start, zero].into_iter().chain(sizes).chain(strides).collect()
            }
        }
    }
}
