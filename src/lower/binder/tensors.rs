//! Tensors (C5, C10).

use super::check::Arg;
use super::helper::{Binder, EXPECTED_NUMBER, EXPECTED_TEXT, GOT, GOT_NUMBER, PATH, VALUE_ERROR, piece};
use super::state::BinderState;
use super::structured::{Condition, StructuredCode, Var};
use crate::ir::{BinaryOp, ConvertOp, IntCC, MemFlags, Type, UnaryOp, Value};
use crate::lower::abi::HEADER;
use crate::lower::abi::fields::{DTypeField, dtype_word};
use crate::lower::abi::tensor::{BYTE_OFFSET, DATA, DEVICE, DTYPE, NDIM, SHAPE, STRIDES};
use crate::lower::protocol::{
    ANY_ID, Binding, Capability, Directive, Field, Path, Piece, TensorDescriptor, TensorFlags, field, offset,
};
use crate::spec::MAX_RANK;
use tvm_ffi_runtime::abi::{DLDataType, DLDeviceType, DLTensor, TypeIndex};

/// A tensor that is looked at.
#[derive(Clone, Copy)]
pub(super) struct Tensor {
    pub ty: Value,
    pub flags: Value,
    /// Its `DLTensor`.
    pub from: Value,
    /// The accepted one.
    pub copy: Value,
    pub rank: Value,
    pub shape: Value,
}

impl Binder<'_, '_> {
    /// Checks a tensor and writes one with a header's room before it and strides.
    pub(super) fn tensor(&mut self, arg: Arg) {
        self.require_index(arg, &[TypeIndex::TENSOR, TypeIndex::DL_TENSOR_PTR]);
        self.require_non_null(arg.payload);
        // an object's DLTensor follows its header (c_api.h, kTVMFFITensor)
        let base = self.b.convert(ConvertOp::IntToPtr, Type::Ptr, arg.payload);
        let inside = self.b.ptr_add_imm(base, i64::from(HEADER));
        let is_object = self.is(arg.index, i64::from(TypeIndex::TENSOR.0));
        let from = self.b.select(is_object, inside, base);

        // The accepted argument is an object whose DLTensor is a copy; nobody reads its header.
        let copy = self.take_memory(size_of::<DLTensor>() as i64);
        let object = self.b.ptr_add_imm(copy, -i64::from(HEADER));
        let object = self.b.convert(ConvertOp::PtrToInt, Type::I64, object);
        self.accept(arg.to, TypeIndex::TENSOR, object);
        let flags = self.read(arg.ty, field!(TensorDescriptor, flags));
        let rank = self.rank(arg.ty, from);
        let shape = self.b.load(Type::Ptr, from, SHAPE, MemFlags::ALIGNED);
        let t = Tensor { ty: arg.ty, flags, from, copy, rank, shape };
        let strides = self.compact_strides(t);
        let end = self.b.element(strides, rank, Type::I64);
        self.set_field(Field::Memory, end);

        self.tensor_dtype(t);
        self.device(t);
        let there = self.is_not(shape, 0);
        let scalar = self.is(rank, 0);
        let ok = Condition::Any(vec![there, scalar]);
        let pieces = [Piece::Text("a non-NULL pointer for ndim "), EXPECTED_NUMBER, Piece::Text(", got NULL")];
        self.require_member(ok, ".shape", &pieces, |r| r.set_field(Field::Expected, rank));
        self.sizes(t);
        let count = self.strides(t);
        self.b.store(shape, copy, SHAPE, MemFlags::ALIGNED);
        let strides = self.compact_strides(t);
        self.b.store(strides, copy, STRIDES, MemFlags::ALIGNED);
        self.data(t, count);
    }

    /// Where the strides of the accepted one are: behind it.
    pub(super) fn compact_strides(&mut self, t: Tensor) -> Value {
        self.b.ptr_add_imm(t.copy, size_of::<DLTensor>() as i64)
    }

    /// Requires something of a member of the tensor: `Mismatched x.dtype on ...`; `tell` sets the fields that only this message shows.
    pub(super) fn require_member(
        &mut self,
        ok: impl Into<Condition>,
        member: &str,
        expected: &[Piece<'_>],
        tell: impl FnOnce(&mut Self),
    ) {
        self.require_of_telling(ok, VALUE_ERROR, &[PATH, Piece::Text(member)], expected, tell);
    }

    pub(super) fn has_flag(&mut self, flags: Value, flag: TensorFlags) -> Value {
        let mask = self.b.i64(i64::from(flag.bits()));
        let set = self.and(flags, mask);
        self.is_not(set, 0)
    }

    fn rank(&mut self, ty: Value, from: Value) -> Value {
        let (rank, got) = (self.read32(ty, field!(TensorDescriptor, rank)), self.word32(from, NDIM / 4));
        let ndim = self.b.convert(ConvertOp::SExt, Type::I64, got);
        let any = self.b.icmp_imm(IntCC::SLt, rank, 0);
        if self.has(Capability::Ranked) {
            let same = self.b.icmp(IntCC::Eq, got, rank);
            let ok = if self.has(Capability::AnyRank) { self.or(any, same) } else { same };
            self.require_member(ok, ".ndim", &[EXPECTED_NUMBER, GOT, GOT_NUMBER], |r| {
                r.set_field(Field::Got, ndim);
                let rank = r.b.convert(ConvertOp::SExt, Type::I64, rank);
                r.set_field(Field::Expected, rank);
            });
        }
        if !self.has(Capability::AnyRank) {
            return ndim;
        }
        let in_range = self.b.icmp_imm(IntCC::ULe, ndim, MAX_RANK as i64);
        let stated = self.b.unary(UnaryOp::Not, any);
        let ok = self.or(in_range, stated);
        let pieces = [Piece::Text(&format!("0 to {MAX_RANK}")), GOT, GOT_NUMBER];
        self.require_member(ok, ".ndim", &pieces, |r| r.set_field(Field::Got, ndim));
        ndim
    }

    /// The stated one, or one that the policy takes for it, which the copy then calls by the stated one's name.
    fn tensor_dtype(&mut self, t: Tensor) {
        let (got, stated) = (self.word32(t.from, DTYPE / 4), self.read32(t.ty, field!(TensorDescriptor, dtype)));
        let mut ok = self.b.icmp(IntCC::Eq, got, stated);
        let [dtype, wanted] = [got, stated].map(|word| self.b.convert(ConvertOp::ZExt, Type::I64, word));
        if self.has(Capability::DTypeCodes) {
            let by_code = self.same_but_code(t.ty, dtype, wanted);
            ok = self.or(ok, by_code);
        }
        if self.has(Capability::SameStorage) {
            let stored = self.has_flag(t.flags, TensorFlags::SAME_STORAGE);
            let (bits, wanted_bits) = (self.dtype_bits(dtype), self.dtype_bits(wanted));
            let as_large = self.b.icmp(IntCC::Eq, bits, wanted_bits);
            let by_storage = self.and(stored, as_large);
            ok = self.or(ok, by_storage);
        }
        let any = self.has_flag(t.flags, TensorFlags::ANY_DTYPE);
        if self.has(Capability::AnyDType) {
            ok = self.or(ok, any);
        }
        self.require_member(ok, ".dtype", &[EXPECTED_TEXT, GOT, piece(Directive::DType, Field::Got)], |r| {
            let dtype = r.b.convert(ConvertOp::ZExt, Type::I64, got);
            r.set_field(Field::Got, dtype);
            let text = r.pool_text(t.ty, field!(TensorDescriptor, dtype_text));
            r.set_field(Field::Text, text);
        });
        let word = self.b.load(Type::I64, t.from, NDIM, MemFlags::ALIGNED);
        self.b.store(word, t.copy, NDIM, MemFlags::ALIGNED);
        if !self.has(Capability::DTypeCodes) && !self.has(Capability::SameStorage) {
            // the copy has it
            return;
        }
        let accepted = self.b.select(any, got, stated);
        self.b.store(accepted, t.copy, DTYPE, MemFlags::ALIGNED);
    }

    /// Whether bits and lanes are the same, and the code is one of those that will do.
    fn same_but_code(&mut self, ty: Value, dtype: Value, wanted: Value) -> Value {
        let codes = self.read(ty, field!(TensorDescriptor, dtype_codes));
        let difference = self.b.binary(BinaryOp::Xor, dtype, wanted);
        let all_but_code = DLDataType { code: 0, bits: u8::MAX, lanes: u16::MAX };
        let mask = dtype_word(self.b.module().endianness, all_but_code);
        let mask = self.b.i64(i64::from(mask));
        let rest = self.and(difference, mask);
        let same = self.is(rest, 0);
        let code = DTypeField::Code.of(&mut self.b, dtype);
        let small = self.b.icmp_imm(IntCC::ULt, code, 32);
        let amount = self.b.i64(31);
        let amount = self.and(code, amount);
        let bit = self.b.binary(BinaryOp::LShr, codes, amount);
        let one = self.b.i64(1);
        let bit = self.and(bit, one);
        let taken = self.is_not(bit, 0);
        let ok = self.and(same, small);
        self.and(ok, taken)
    }

    /// Bits times lanes.
    fn dtype_bits(&mut self, dtype: Value) -> Value {
        let bits = DTypeField::Bits.of(&mut self.b, dtype);
        let lanes = DTypeField::Lanes.of(&mut self.b, dtype);
        self.b.binary(BinaryOp::Mul, bits, lanes)
    }

    /// The kind of device, then its id: as stated, or that of the first tensor in the same slot.
    fn device(&mut self, t: Tensor) {
        let device = self.b.load(Type::I64, t.from, DEVICE, MemFlags::ALIGNED);
        self.b.store(device, t.copy, DEVICE, MemFlags::ALIGNED);
        let wanted = self.read32(t.ty, field!(TensorDescriptor, device_type));
        let stated = self.read32(t.ty, field!(TensorDescriptor, device_id));
        let got = piece(Directive::Device, Field::Got);
        let mut ok = None;
        if self.has(Capability::DeviceType) {
            let device_type = self.word32(t.from, DEVICE / 4);
            let any_type = self.b.icmp_imm(IntCC::SLt, wanted, 0);
            let same_type = self.b.icmp(IntCC::Eq, device_type, wanted);
            ok = Some(if self.has(Capability::AnyDevice) { self.or(any_type, same_type) } else { same_type });
        }
        if self.has(Capability::DeviceId) {
            let id = self.word32(t.from, DEVICE / 4 + 1);
            let any_id = self.b.icmp_imm(IntCC::SLt, stated, 0);
            let same_id = self.b.icmp(IntCC::Eq, id, stated);
            let id_ok = self.or(any_id, same_id);
            ok = Some(ok.map_or(id_ok, |ok| self.and(ok, id_ok)));
        }
        if let Some(ok) = ok {
            self.require_member(ok, ".device", &[EXPECTED_TEXT, GOT, got], |r| {
                r.set_field(Field::Got, device);
                let text = r.pool_text(t.ty, field!(TensorDescriptor, device_text));
                r.set_field(Field::Text, text);
            });
        }
        if !self.has(Capability::SameDevice) {
            return;
        }
        // only a tensor that may be anywhere says where the others have to be
        let shared = self.b.icmp_imm(IntCC::SLt, stated, i64::from(ANY_ID));
        let share = |r: &mut Self| {
            let stated = r.read(t.ty, field!(TensorDescriptor, device_id));
            let first = r.b.i64(i64::from(ANY_ID) - 1);
            let slot = r.b.binary(BinaryOp::Sub, first, stated);
            let binding = r.device_binding(slot);
            let bound = r.is_bound(binding);
            r.when_else(
                bound,
                |r| {
                    let first = r.b.load(Type::I64, binding, offset!(Binding, value), MemFlags::ALIGNED);
                    let ok = r.b.icmp(IntCC::Eq, device, first);
                    let pieces = [
                        piece(Directive::NumberedDevice, Field::Expected),
                        Piece::Text(" (from "),
                        piece(Directive::ValuePath, Field::Origin),
                        Piece::Text(".device), got "),
                        got,
                    ];
                    r.require_member(ok, ".device", &pieces, |r| {
                        r.set_field(Field::Got, device);
                        r.set_field(Field::Expected, first);
                        let origin = r.b.ptr_add_imm(binding, i64::from(offset!(Binding, path)));
                        r.set_field(Field::Origin, origin);
                    });
                },
                |r| r.bind_device(binding, device),
            );
        };
        match self.has(Capability::DeviceId) || self.has(Capability::AnyDeviceId) {
            true => self.when(shared, share),
            false => share(self),
        }
    }

    /// Gives the tensors of a slot their device. Messages show the tensor's path without a dimension.
    fn bind_device(&mut self, binding: Value, device: Value) {
        if self.has(Capability::Elements) {
            return self.bind(binding, device);
        }
        self.b.store(device, binding, offset!(Binding, value), MemFlags::ALIGNED);
        let here = self.path();
        let name = self.b.load(Type::Ptr, here, offset!(Path, name), MemFlags::ALIGNED);
        self.b.store(name, binding, offset!(Binding, path.name), MemFlags::ALIGNED);
    }

    pub(super) fn device_binding(&mut self, slot: Value) -> Value {
        let bindings = self.field_ptr(Field::DeviceBindings);
        let size = self.binding_size();
        self.nth_of(bindings, slot, size)
    }

    pub(super) fn set_member(&mut self, member: &str) {
        let member = self.own_text(member);
        self.set_path(offset!(Path, member), member);
    }

    /// The first element's address is not NULL and aligned, unless there are no elements; then the fast path gets an aligned address that
    /// nobody may read (C10.19, C10.20).
    fn data(&mut self, t: Tensor, count: Value) {
        let data = self.b.load(Type::I64, t.from, DATA, MemFlags::ALIGNED);
        let byte_offset = self.b.load(Type::I64, t.from, BYTE_OFFSET, MemFlags::ALIGNED);
        let empty = self.is(count, 0);
        let there = self.is_not(data, 0);
        let ok = Condition::Any(vec![there, empty]);
        let pieces = [Piece::Text("a non-NULL pointer to "), EXPECTED_NUMBER, Piece::Text(" elements, got NULL")];
        self.require_member(ok, ".data", &pieces, |r| r.set_field(Field::Expected, count));

        let sum = self.b.binary(BinaryOp::Add, data, byte_offset);
        let opaque = self.may_be_opaque().then(|| self.is_opaque(t));
        let address = opaque.map_or(sum, |opaque| self.b.select(opaque, byte_offset, sum));
        let align = self.read(t.ty, field!(TensorDescriptor, align));
        let one = self.b.i64(1);
        let mask = self.b.binary(BinaryOp::Sub, align, one);
        let rest = self.and(address, mask);
        let aligned = self.is(rest, 0);
        let ok = Condition::Any(vec![aligned, empty]);
        let pieces = [
            EXPECTED_TEXT,
            Piece::Text(" to be a multiple of "),
            EXPECTED_NUMBER,
            Piece::Text(", got one that is off by "),
            GOT_NUMBER,
        ];
        self.require_member(ok, ".data", &pieces, |r| {
            r.set_field(Field::Expected, align);
            r.set_field(Field::Got, rest);
            let mut text = r.own_text("data + byte_offset");
            if let Some(opaque) = opaque {
                let offset_alone = r.own_text("byte_offset");
                text = r.b.select(opaque, offset_alone, text);
            }
            r.set_field(Field::Text, text);
        });

        let zero = self.b.i64(0);
        let (mut accepted, mut accepted_offset) = (data, byte_offset);
        if self.has(Capability::Fold) {
            let mut fold = self.has_flag(t.flags, TensorFlags::FOLD);
            if let Some(opaque) = opaque {
                let direct = self.b.unary(UnaryOp::Not, opaque);
                fold = self.and(fold, direct);
            }
            accepted = self.b.select(fold, sum, accepted);
            accepted_offset = self.b.select(fold, zero, accepted_offset);
        }
        let fine = self.and(there, aligned);
        let accepted = self.b.select(fine, accepted, align);
        let accepted_offset = self.b.select(fine, accepted_offset, zero);
        self.b.store(accepted, t.copy, DATA, MemFlags::ALIGNED);
        self.b.store(accepted_offset, t.copy, BYTE_OFFSET, MemFlags::ALIGNED);
    }

    fn may_be_opaque(&self) -> bool {
        self.has(Capability::Opaque) || self.has(Capability::AnyDevice)
    }

    /// Whether the data pointer is no address: as the signature says, or by the device that came.
    fn is_opaque(&mut self, t: Tensor) -> Value {
        let opaque = Var::new(&mut self.b, Type::I64);
        let stated = self.has_flag(t.flags, TensorFlags::OPAQUE);
        let stated_wide = self.b.convert(ConvertOp::ZExt, Type::I64, stated);
        self.set(opaque, stated_wide);
        let wanted = self.read32(t.ty, field!(TensorDescriptor, device_type));
        let any = self.b.icmp_imm(IntCC::SLt, wanted, 0);
        self.when(any, |r| {
            let device_type = r.word32(t.from, DEVICE / 4);
            // kinds that don't exist are counted as `DLDeviceType::is_direct_address` does
            let mut direct = r.b.icmp_imm(IntCC::SLt, device_type, i64::from(DLDeviceType::CPU.0));
            for kind in DLDeviceType::ALL.iter().filter(|kind| kind.is_direct_address()) {
                let is = r.is(device_type, i64::from(kind.0));
                direct = r.or(direct, is);
            }
            let no_address = r.b.unary(UnaryOp::Not, direct);
            let no_address = r.b.convert(ConvertOp::ZExt, Type::I64, no_address);
            r.set(opaque, no_address);
        });
        let opaque = self.get(opaque);
        self.is_not(opaque, 0)
    }
}
