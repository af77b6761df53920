//! Results that are owned: a tensor that the wrapper allocates, and what a kernel writes.

use super::decode::HEADER;
use super::decode::tensor::{BYTE_OFFSET, DATA, DEVICE, DTYPE, NDIM, SHAPE, STRIDES};
use super::fields::{dtype_word, pair};
use super::kernel::convention::TensorForm;
use super::program::{self, SharedId, note};
use super::support;
use super::wrapper::{ANY_SIZE, Lowerer, PAYLOAD, TYPE_INDEX, store_any, succeed};
use crate::ir::{BinaryOp, Hint, IntCC, MemFlags, Type, Value};
use crate::spec::{DType, Device, ParamType, Signature, TensorType};
use tvm_ffi_runtime::abi::{DLTensor, TypeIndex};

/// A returned tensor before the kernel fills it.
pub(super) struct Allocated {
    /// The object.
    object: Value,
    /// What the kernel takes.
    pub passed: Vec<Value>,
}

impl Lowerer<'_> {
    /// The sizes of a returned tensor, under the condition that none is negative and that their products fit.
    pub(super) fn result_sizes(&mut self, signature: &Signature) -> Option<Vec<Value>> {
        let Some(ParamType::Tensor(tensor)) = signature.ret() else { return None };
        let dims = tensor.shape.dims().unwrap_or_default();
        let mut sizes = Vec::with_capacity(dims.len());
        for dim in dims {
            // what the good path can't compute, the builder or `needs_bind` has seen
            let size = match self.compute(dim, None) {
                Some(size) => size,
                None => self.b.i64(0),
            };
            self.require_non_negative(size);
            sizes.push(size);
        }
        self.products(&sizes, true);
        self.settle();
        Some(sizes)
    }

    /// Allocates the returned tensor by `TVMFFIEnvTensorAlloc` (extra/c_env_api.h).
    pub(super) fn allocate(&mut self, signature: &Signature, values: &[Vec<Value>], sizes: &[Value]) -> Allocated {
        let Some(ParamType::Tensor(tensor)) = signature.ret() else {
            let null = self.b.ptr_const(0);
            return Allocated { object: null, passed: Vec::new() };
        };
        let named = |name: &str| {
            let at = signature.params().iter().position(|param| param.name == name);
            at.and_then(|at| values.get(at)).and_then(|values| values.first()).copied()
        };
        let shape = self.b.slot(8 * sizes.len().max(1) as u32, 8);
        let shape = self.b.stack_addr(shape);
        for (d, size) in (0i32..).zip(sizes) {
            self.b.store(*size, shape, 8 * d, MemFlags::ALIGNED);
        }
        let prototype = self.b.slot(size_of::<DLTensor>() as u32, 8);
        let prototype = self.b.stack_addr(prototype);
        let (null, zero) = (self.b.ptr_const(0), self.b.i64(0));
        let device = self.result_device(signature, tensor, &named);
        let ndim = self.b.iconst(Type::I32, sizes.len() as i64);
        let order = self.b.module().endianness;
        let dtype = match &tensor.dtype {
            DType::Exact(dtype) => self.b.iconst(Type::I32, i64::from(dtype_word(order, *dtype) as i32)),
            DType::Param(name) => named(name).unwrap_or_else(|| self.b.iconst(Type::I32, 0)),
            // no result has it
            DType::Any => self.b.iconst(Type::I32, 0),
        };
        let fields = [
            (DATA, null),
            (DEVICE, device),
            (NDIM, ndim),
            (DTYPE, dtype),
            (SHAPE, shape),
            (STRIDES, null),
            (BYTE_OFFSET, zero),
        ];
        for (offset, value) in fields {
            self.b.store(value, prototype, offset, MemFlags::ALIGNED);
        }
        let out = self.b.slot(8, 8);
        let out = self.b.stack_addr(out);
        self.b.store(null, out, 0, MemFlags::ALIGNED);
        let allocate = self.import("TVMFFIEnvTensorAlloc", &[Type::Ptr, Type::Ptr], Some(Type::I32));
        if let Some(code) = self.b.call(allocate, &[prototype, out]) {
            let (ok, failed) = (self.b.block(), self.b.cold_block());
            let fine = self.b.icmp_imm(IntCC::Eq, code, 0);
            self.b.branch(fine, ok, failed, Hint::Likely);
            self.b.switch_to(failed);
            self.b.ret(Some(code));
            self.b.switch_to(ok);
        }
        let object = self.b.load(Type::Ptr, out, 0, MemFlags::ALIGNED);
        let passed = self.pass_allocated(tensor, object, sizes);
        Allocated { object, passed }
    }

    /// The device of a returned tensor: as stated, or that of the tensors that it shares one with.
    fn result_device(
        &mut self,
        signature: &Signature,
        tensor: &TensorType,
        named: &dyn Fn(&str) -> Option<Value>,
    ) -> Value {
        let (kind, (slot, id)) = match &tensor.device {
            Device::Param(name) => return named(name).unwrap_or_else(|| self.b.i64(0)),
            Device::Kind(kind, _) => (*kind, self.shared_devices.place(&tensor.device)),
            // no result has it
            Device::Any => return self.b.i64(0),
        };
        let number = match id {
            SharedId::Fixed(id) => id,
            SharedId::OfSlot | SharedId::Any => 0,
        };
        let order = self.b.module().endianness;
        let otherwise = self.b.i64(pair(order, kind.0 as u32, number as u32));
        match id {
            // of those in containers, only `bind` knows
            SharedId::OfSlot if let Some(scratch) = self.from_bind => {
                let notes = program::notes_offset(signature.passed().count());
                let number = signature.names_in_dims().len() + slot;
                let scratch = self.b.stack_addr(scratch);
                let offset = (notes + number as i64 * self.note_size) as i32;
                let device = self.b.load(Type::I64, scratch, offset + note::VALUE, MemFlags::ALIGNED);
                let there = self.b.icmp_imm(IntCC::Ne, device, 0);
                self.b.select(there, device, otherwise)
            }
            SharedId::OfSlot => self.first_device(otherwise, |seen| seen.slot == Some(slot)),
            SharedId::Fixed(_) | SharedId::Any => otherwise,
        }
    }

    fn pass_allocated(&mut self, tensor: &TensorType, object: Value, sizes: &[Value]) -> Vec<Value> {
        let descriptor = self.b.ptr_add_imm(object, i64::from(HEADER));
        let form = match self.convention.form(tensor) {
            // the prototype of a result with an open dtype is that of any data pointer
            TensorForm::Descriptor => return vec![descriptor],
            form => form,
        };
        let data = self.b.load(Type::Ptr, descriptor, DATA, MemFlags::ALIGNED);
        let byte_offset = self.b.load(Type::I64, descriptor, BYTE_OFFSET, MemFlags::ALIGNED);
        if tensor.is_opaque() {
            return vec![data, byte_offset];
        }
        let start = self.b.ptr_add(data, byte_offset);
        if form == TensorForm::Data {
            return vec![start];
        }
        let zero = self.b.i64(0);
        let strides = self.products(sizes, false);
        [start, start, zero].into_iter().chain(sizes.iter().copied()).chain(strides).collect()
    }

    /// A place for what the kernel writes, None at first.
    pub(super) fn owned_slot(&mut self) -> Value {
        let slot = self.b.slot(ANY_SIZE as u32, 8);
        let slot = self.b.stack_addr(slot);
        let zero = self.b.i64(0);
        store_any(&mut self.b, slot, TypeIndex::NONE, zero);
        slot
    }

    /// Returns a status: untouched where it is not 0 (contract 9), what there is released.
    pub(super) fn status(
        &mut self,
        signature: &Signature,
        code: Value,
        written: Option<(&ParamType, Value)>,
        allocated: Option<Allocated>,
    ) {
        if written.is_none() && allocated.is_none() {
            return self.b.ret(Some(code));
        }
        let (ok, failed) = (self.b.block(), self.b.cold_block());
        let fine = self.b.icmp_imm(IntCC::Eq, code, 0);
        self.b.branch(fine, ok, failed, Hint::Likely);
        self.b.switch_to(failed);
        if let Some(allocated) = &allocated {
            self.release(allocated.object);
        }
        if let Some((_, slot)) = written {
            self.release_written(slot);
        }
        self.b.ret(Some(code));
        self.b.switch_to(ok);
        match written {
            Some((ret, slot)) => {
                let record = program::encode_result(self.texts, signature, ret);
                let table = self.b.data_addr(self.messages, 0);
                let record = self.b.iconst(Type::I32, i64::from(record));
                // nothing is returned where it stands: the caller's None stays as it was
                let result = if *ret == ParamType::None { slot } else { self.b.param(3) };
                let take_result = support::take_result(self.b.module());
                let code = self.b.call(take_result, &[table, record, slot, result]);
                self.b.ret(code);
            }
            None => self.success(allocated),
        }
    }

    /// Returns 0, and the tensor that was allocated.
    pub(super) fn success(&mut self, allocated: Option<Allocated>) {
        if let Some(allocated) = allocated {
            let result = self.b.param(3);
            store_any(&mut self.b, result, TypeIndex::TENSOR, allocated.object);
        }
        succeed(&mut self.b);
    }

    fn release(&mut self, object: Value) {
        let release = self.import("TVMFFIObjectDecRef", &[Type::Ptr], Some(Type::I32));
        self.b.call(release, &[object]);
    }

    /// Releases what a kernel has written before it failed: an object that is there.
    fn release_written(&mut self, slot: Value) {
        let index = self.b.load(Type::I32, slot, TYPE_INDEX, MemFlags::ALIGNED);
        let payload = self.b.load(Type::Ptr, slot, PAYLOAD, MemFlags::ALIGNED);
        let is_object = self.b.icmp_imm(IntCC::SGe, index, i64::from(TypeIndex::STATIC_OBJECT_BEGIN.0));
        let there = self.b.icmp_imm(IntCC::Ne, payload, 0);
        let owned = self.b.binary(BinaryOp::And, is_object, there);
        let (yes, no) = (self.b.cold_block(), self.b.cold_block());
        self.b.branch(owned, yes, no, Hint::None);
        self.b.switch_to(yes);
        self.release(payload);
        self.b.jump(no, &[]);
        self.b.switch_to(no);
    }
}
