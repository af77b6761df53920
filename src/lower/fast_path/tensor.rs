//! The fast path of tensor arguments in the form that callers nearly always use: an `ffi.Tensor` or `DLTensor*` with
//! contiguous strides that are not NULL. All other forms take the slow path.

use std::ptr;

use super::checks::Checks;
use super::context::{AnyRef, Context};
use super::dims::Dims;
use super::state::SeenDevice;
use crate::ir::{ConvertOp, Hint, IntCC, MAX_SAME_BYTES, MemFlags, Type, Value};
use crate::lower::abi::fields::{self, dtype_word, pair};
use crate::lower::abi::tensor::{BYTE_OFFSET, DATA, DEVICE, NDIM, SHAPE, STRIDES};
use crate::lower::abi::{HEADER, TYPE_INDEX};
use crate::lower::convention::TensorForm;
use crate::lower::devices::SharedId;
use crate::spec::{Layout, TensorType};
use tvm_ffi_runtime::abi::{DLDeviceType, TypeIndex};

/// The number of tensor arguments that are checked together: registers can hold two of them.
pub(super) const TOGETHER: usize = 2;

/// The min number of dimensions for comparing a shape with an equal one as a block of memory.
const BLOCK_RANK: usize = 4;
const _: () = assert!(8 * crate::spec::MAX_RANK as u32 <= MAX_SAME_BYTES);

/// The size or stride of dimension `d`.
fn number(c: &mut Checks<'_, '_>, base: Value, d: usize) -> Value {
    c.b.load(Type::I64, base, 8 * d as i32, MemFlags::ALIGNED)
}

/// A tensor argument.
struct Tensor<'a> {
    ty: &'a TensorType,
    /// The address of its `DLTensor`, minus the size of an object's header. An `ffi.Tensor` is passed by this address.
    base: Value,
}

/// The sizes and strides, if the kernel uses them.
type Extents = (Vec<Value>, Vec<Value>);

/// Two blocks of numbers that must be equal: their addresses, and the number of entries.
type Same = (Value, Value, usize);

/// Checks tensor arguments, binds their variables, and returns the kernel's values for each. Does each kind of check
/// for all of them together, in an order that needs few registers.
pub(super) fn lower(cx: &mut Context<'_, '_, '_>, arguments: &[(AnyRef, &TensorType)]) -> Vec<Vec<Value>> {
    let c = &mut cx.checks;
    let tensors: Vec<_> = arguments.iter().map(|(arg, ty)| Tensor::argument(c, *arg, ty)).collect();
    let bases: Vec<_> = tensors.iter().map(|tensor| tensor.base).collect();
    c.require_all_non_null(&bases);
    let data: Vec<_> = tensors.iter().map(|tensor| tensor.load(c, Type::Ptr, DATA)).collect();
    c.require_all_non_null(&data);
    let data: Vec<_> = tensors.iter().zip(data).map(|(tensor, data)| tensor.data(cx, data)).collect();
    let extents = match cx.checks.slow_path() {
        Some(_) => shapes(cx, &tensors),
        // convention `flat` passes only a data pointer or a `DLTensor*`
        None => vec![Extents::default(); tensors.len()],
    };
    let values = tensors.iter().zip(data).zip(extents);
    values.map(|((tensor, data), extents)| tensor.values(cx, data, extents)).collect()
}

/// Checks ranks, dtypes, devices, sizes and strides.
fn shapes(cx: &mut Context<'_, '_, '_>, tensors: &[Tensor<'_>]) -> Vec<Extents> {
    cx.checks.flush_bits();
    for tensor in tensors {
        tensor.header(cx);
    }
    let mut same = Vec::new();
    let extents: Vec<_> = tensors.iter().map(|tensor| tensor.extents(cx, &mut same)).collect();
    // group the blocks that are compared with the same one
    same.sort_by_key(|(with, _, count)| (*count, *with));
    for some in same.chunk_by(|x, y| x.2 == y.2) {
        let bytes = 8 * some[0].2 as u32;
        for some in some.chunks((MAX_SAME_BYTES / bytes) as usize) {
            cx.checks.require_same_bytes(some.iter().map(|(x, y, _)| (*x, *y)).collect(), bytes);
        }
    }
    extents
}

impl<'a> Tensor<'a> {
    /// Loads an argument that is an `ffi.Tensor` or a `DLTensor*`. The `DLTensor` of an `ffi.Tensor` follows its
    /// header. The pointer may still be NULL.
    fn argument(c: &mut Checks<'_, '_>, arg: AnyRef, ty: &'a TensorType) -> Self {
        let payload = arg.payload(c, Type::Ptr);
        // the binder turns all tensors into objects
        let Some(slow_path) = c.slow_path() else { return Tensor { ty, base: payload } };
        let type_index = arg.type_index(c);
        let (other, join) = (c.b.cold_block(), c.b.block());
        let base = c.b.block_param(join, Type::Ptr);
        let is_object = c.b.icmp_imm(IntCC::Eq, type_index, i64::from(TypeIndex::TENSOR.0));
        c.b.branch_with(is_object, (join, &[payload]), (other, &[]), Hint::Likely);

        c.b.switch_to(other);
        // a second, wider load, so the usual path can compare in memory
        let both = c.b.load(Type::I64, arg.base, arg.offset + TYPE_INDEX, MemFlags::ALIGNED);
        let type_index = fields::first(c.b, both);
        let non_null = c.b.icmp_imm(IntCC::Ne, payload, 0);
        let shifted = c.b.ptr_add_imm(payload, -i64::from(HEADER));
        let shifted = c.b.select(non_null, shifted, payload);
        let is_pointer = c.b.icmp_imm(IntCC::Eq, type_index, i64::from(TypeIndex::DL_TENSOR_PTR.0));
        c.b.branch_with(is_pointer, (join, &[shifted]), (slow_path, &[]), Hint::Likely);

        c.b.switch_to(join);
        Tensor { ty, base }
    }

    /// A field of the `DLTensor`.
    fn load(&self, c: &mut Checks<'_, '_>, ty: Type, offset: i32) -> Value {
        c.b.load(ty, self.base, HEADER + offset, MemFlags::ALIGNED)
    }

    /// Checks ndim, dtype and device. The binder checks a rank or dtype that the signature leaves open.
    fn header(&self, cx: &mut Context<'_, '_, '_>) {
        let c = &mut cx.checks;
        match (self.ty.shape.rank(), self.ty.exact_dtype()) {
            (Some(rank), Some(dtype)) => {
                let ndim_and_dtype = self.load(c, Type::I64, NDIM);
                let order = c.b.module().endianness;
                let expected = pair(order, rank as u32, dtype_word(order, dtype));
                // a loaded value takes less code than such a constant
                let known = cx.headers.iter().find(|(known, _)| *known == expected).map(|(_, value)| *value);
                let wanted = known.unwrap_or_else(|| c.b.i64(expected));
                c.require_equal(wanted, ndim_and_dtype);
                if known.is_none() {
                    cx.headers.push((expected, ndim_and_dtype));
                }
            }
            (Some(rank), None) => {
                let ndim = self.load(c, Type::I32, NDIM);
                let expected = c.b.iconst(Type::I32, rank as i64);
                c.require_equal(ndim, expected);
            }
            (None, _) => {}
        }
        self.device(cx);
    }

    /// Checks the kind of device and its id in one comparison; only the kind for the first tensor in a slot.
    fn device(&self, cx: &mut Context<'_, '_, '_>) {
        let Context { checks: c, devices, plan, .. } = cx;
        let (slot, id) = plan.devices.place(&self.ty.device);
        let kind = self.ty.device.kind().map(|kind| kind.0);
        let device = self.load(c, Type::I64, DEVICE);
        let first = devices.of_slots.iter().find(|(known, _)| *known == slot).map(|(_, first)| *first);
        match (kind, id, first) {
            (Some(kind), SharedId::Fixed(id), _) => {
                let order = c.b.module().endianness;
                let expected = c.b.i64(pair(order, kind as u32, id as u32));
                c.require_equal(expected, device);
            }
            (_, SharedId::OfSlot, Some(first)) => c.require_equal(first, device),
            (kind, id, _) => {
                if let Some(kind) = kind {
                    let device_type = fields::first(c.b, device);
                    let kind = c.b.iconst(Type::I32, i64::from(kind));
                    c.require_equal(device_type, kind);
                }
                if id == SharedId::OfSlot {
                    devices.of_slots.push((slot, device));
                }
            }
        }
        if let Some(order) = plan.tensors.iter().position(|known| ptr::eq(*known, self.ty)) {
            let slot = (id == SharedId::OfSlot).then_some(slot);
            let has_stream = self.ty.device.kind() != Some(DLDeviceType::CPU);
            let is_certain = kind.is_some_and(|kind| kind != 0);
            devices.all.push(SeenDevice { order, slot, has_stream, is_certain, device });
        }
    }

    /// Checks sizes and strides, and binds their variables. Even if nothing is compared with them, sizes have to fit
    /// and strides must not be NULL. Comparisons as blocks are left to the caller, in `same`.
    fn extents(&self, cx: &mut Context<'_, '_, '_>, same: &mut Vec<Same>) -> Extents {
        let Context { checks: c, dims: vars, plan, .. } = cx;
        let dims = self.ty.shape.dims().unwrap_or_default();
        if dims.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let (shape, strides) = (self.load(c, Type::Ptr, SHAPE), self.load(c, Type::Ptr, STRIDES));
        c.require_all_non_null(&[shape, strides]);
        let known = match vars.find(dims) {
            // compare as a block if that takes less code than one by one
            Some(known) if dims.len() >= BLOCK_RANK => {
                same.push((vars.known(known).shape, shape, dims.len()));
                known
            }
            known => {
                let sizes = self.sizes(c, vars, shape);
                known.unwrap_or_else(|| vars.remember(c, dims, sizes, shape))
            }
        };
        match (&self.ty.layout, vars.known(known).strides) {
            (Layout::Contiguous, Some(others)) if dims.len() >= BLOCK_RANK => same.push((others, strides, dims.len())),
            (Layout::Contiguous, _) => {
                for d in 0..dims.len() {
                    let stride = number(c, strides, d);
                    c.require_equal(vars.known(known).compact[d], stride);
                }
                vars.known(known).strides = Some(strides);
            }
            (Layout::Strides(wanted), _) => {
                for (d, dim) in wanted.iter().enumerate() {
                    let stride = number(c, strides, d);
                    vars.match_dim(c, dim, stride, false);
                }
            }
            (Layout::Any, _) => {}
        }
        let sizes = vars.known(known).sizes.clone();
        let strides = match self.ty.layout {
            Layout::Contiguous => vars.known(known).compact.clone(),
            _ if plan.convention.form(self.ty) == TensorForm::MemRef => {
                (0..dims.len()).map(|d| number(c, strides, d)).collect()
            }
            _ => Vec::new(),
        };
        (sizes, strides)
    }

    /// Matches each size separately.
    fn sizes(&self, c: &mut Checks<'_, '_>, vars: &mut Dims, shape: Value) -> Vec<Value> {
        let dims = self.ty.shape.dims().unwrap_or_default();
        let matched = dims.iter().enumerate().map(|(d, dim)| {
            let size = number(c, shape, d);
            vars.match_dim(c, dim, size, true);
            vars.matched(dim, size)
        });
        matched.collect()
    }

    /// The aligned address of the first element, and the byte offset that it doesn't include. A kernel that receives
    /// the `DLTensor` receives it unchanged, so its offset has to be 0, unless data pointers are opaque handles.
    fn data(&self, cx: &mut Context<'_, '_, '_>, data: Value) -> (Value, Value) {
        let c = &mut cx.checks;
        let byte_offset = self.load(c, Type::I64, BYTE_OFFSET);
        if self.ty.is_opaque() {
            c.require_multiple(byte_offset, self.ty.alignment());
            return (data, byte_offset);
        }
        let start = match cx.plan.convention.form(self.ty) {
            // keep the offset where `data` may be a handle; the binder has checked it
            TensorForm::Descriptor if self.ty.device.kind().is_none() => return (data, byte_offset),
            TensorForm::Descriptor => {
                c.require_zero(byte_offset);
                data
            }
            TensorForm::Data | TensorForm::MemRef => c.b.ptr_add(data, byte_offset),
        };
        let address = c.b.convert(ConvertOp::PtrToInt, Type::I64, start);
        c.require_multiple(address, self.ty.alignment());
        (start, byte_offset)
    }

    /// The values that the kernel receives.
    fn values(
        &self,
        cx: &mut Context<'_, '_, '_>,
        (start, byte_offset): (Value, Value),
        (sizes, strides): Extents,
    ) -> Vec<Value> {
        let b = &mut cx.checks.b;
        match cx.plan.convention.form(self.ty) {
            TensorForm::Descriptor => vec![b.ptr_add_imm(self.base, i64::from(HEADER))],
            TensorForm::Data if self.ty.is_opaque() => vec![start, byte_offset],
            TensorForm::Data => vec![start],
            TensorForm::MemRef => {
                let zero = b.i64(0);
                [start, start, zero].into_iter().chain(sizes).chain(strides).collect()
            }
        }
    }
}
