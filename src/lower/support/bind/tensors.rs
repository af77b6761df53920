//! Tensors: contract 1 to 5 and 7.

use super::check::Arg;
use super::{Binder, EXPECTED_NUMBER, EXPECTED_TEXT, Field, GOT, GOT_NUMBER, PATH, VALUE_ERROR, of};
use crate::ir::{BinaryOp, ConvertOp, IntCC, MemFlags, Type, UnaryOp, Value};
use crate::lower::decode::HEADER;
use crate::lower::decode::tensor::{BYTE_OFFSET, DATA, DEVICE, DTYPE, NDIM, SHAPE, STRIDES};
use crate::lower::fields::{DTypeField, dtype_word};
use crate::lower::messages::{Part, Tag};
use crate::lower::program::{Aspect, flag, note, place, tensor};
use crate::lower::support::emit::{Emit, Var};
use crate::lower::support::state::State;
use crate::spec::MAX_RANK;
use tvm_ffi_runtime::abi::{DLDataType, DLDeviceType, DLTensor, TypeIndex};

/// Device types that DLPack knows (`DLDeviceType`).
const DEVICE_TYPES: std::ops::RangeInclusive<i32> = 1..=18;

/// A tensor that is looked at.
#[derive(Clone, Copy)]
pub(super) struct Tensor {
    pub rec: Value,
    pub flags: Value,
    /// Its `DLTensor`.
    pub from: Value,
    /// The accepted one.
    pub copy: Value,
    pub rank: Value,
    /// Whether an extent is 0, and the product of sizes so far.
    pub empty: Var,
    pub product: Var,
}

impl Binder<'_, '_> {
    /// Checks a tensor and writes one with a header's room before it and strides.
    pub(super) fn tensor(&mut self, arg: Arg) {
        self.require_index(arg, &[TypeIndex::TENSOR, TypeIndex::DL_TENSOR_PTR]);
        self.require_there(arg.payload);
        // an object's DLTensor follows its header (c_api.h, kTVMFFITensor)
        let base = self.b.convert(ConvertOp::IntToPtr, Type::Ptr, arg.payload);
        let inside = self.b.ptr_add_imm(base, i64::from(HEADER));
        let is_object = self.is(arg.index, i64::from(TypeIndex::TENSOR.0));
        let from = self.b.select(is_object, inside, base);

        // The accepted argument is an object whose DLTensor is a copy; nobody reads its header.
        let copy = self.take_memory(size_of::<DLTensor>() as i64);
        let object = self.b.ptr_add_imm(copy, -i64::from(HEADER));
        let object = self.b.convert(ConvertOp::PtrToInt, Type::I64, object);
        self.accept(arg.to, TypeIndex::TENSOR, Some(object));
        for offset in (0..size_of::<DLTensor>() as i32).step_by(8) {
            let word = self.b.load(Type::I64, from, offset, MemFlags::ALIGNED);
            self.b.store(word, copy, offset, MemFlags::ALIGNED);
        }
        let flags = self.word(arg.rec, tensor::FLAGS);
        let rank = self.rank(arg.rec, from);
        let strides = self.field_ptr(Field::Memory);
        let end = self.nth(strides, rank, 8);
        self.set_field(Field::Memory, end);

        let (empty, product) = (Var::new(&mut self.b, Type::I64), Var::new(&mut self.b, Type::I64));
        let t = Tensor { rec: arg.rec, flags, from, copy, rank, empty, product };
        self.tensor_dtype(t);
        self.device(t);
        let shape = self.b.load(Type::Ptr, from, SHAPE, MemFlags::ALIGNED);
        self.set_field(Field::Expected, rank);
        let there = self.is_not(shape, 0);
        let scalar = self.is(rank, 0);
        let ok = self.or(there, scalar);
        let parts = [Part::Text("a non-NULL pointer for ndim "), EXPECTED_NUMBER, Part::Text(", got NULL")];
        self.require_part(ok, ".shape", &parts);
        self.sizes(t, shape);
        self.strides(t, shape, strides);
        self.b.store(strides, copy, STRIDES, MemFlags::ALIGNED);
        self.data(t);
    }

    /// Requires something of a part of the tensor: `Mismatched x.dtype on ...`.
    pub(super) fn require_part(&mut self, ok: Value, part: &str, expected: &[Part<'_>]) {
        self.require_of(ok, VALUE_ERROR, &[PATH, Part::Text(part)], expected);
    }

    pub(super) fn has_flag(&mut self, flags: Value, flag: u32) -> Value {
        let mask = self.b.i64(i64::from(flag));
        let set = self.and(flags, mask);
        self.is_not(set, 0)
    }

    fn rank(&mut self, rec: Value, from: Value) -> Value {
        let rank = self.word(rec, tensor::RANK);
        let ndim = self.word(from, NDIM / 4);
        self.set_field(Field::Got, ndim);
        self.set_field(Field::Expected, rank);
        let any = self.b.icmp_imm(IntCC::SLt, rank, 0);
        if self.has(Aspect::Ranked) {
            let same = self.b.icmp(IntCC::Eq, ndim, rank);
            let ok = if self.has(Aspect::AnyRank) { self.or(any, same) } else { same };
            self.require_part(ok, ".ndim", &[EXPECTED_NUMBER, GOT, GOT_NUMBER]);
        }
        if !self.has(Aspect::AnyRank) {
            return ndim;
        }
        let in_range = self.b.icmp_imm(IntCC::ULe, ndim, MAX_RANK as i64);
        let stated = self.b.unary(UnaryOp::Not, any);
        let ok = self.or(in_range, stated);
        self.require_part(ok, ".ndim", &[Part::Text(&format!("0 to {MAX_RANK}")), GOT, GOT_NUMBER]);
        ndim
    }

    /// The stated one, or one that the policy takes for it, which the copy then calls by the stated one's name.
    fn tensor_dtype(&mut self, t: Tensor) {
        let dtype = self.word(t.from, DTYPE / 4);
        let wanted = self.word(t.rec, tensor::DTYPE);
        self.set_field(Field::Got, dtype);
        let text = self.table_text(t.rec, tensor::DTYPE_TEXT);
        self.set_field(Field::Text, text);
        let mut ok = self.b.icmp(IntCC::Eq, dtype, wanted);
        if self.has(Aspect::DTypeCodes) {
            let by_code = self.same_but_code(t.rec, dtype, wanted);
            ok = self.or(ok, by_code);
        }
        if self.has(Aspect::SameStorage) {
            let stored = self.has_flag(t.flags, flag::SAME_STORAGE);
            let (bits, wanted_bits) = (self.dtype_bits(dtype), self.dtype_bits(wanted));
            let as_large = self.b.icmp(IntCC::Eq, bits, wanted_bits);
            let by_storage = self.and(stored, as_large);
            ok = self.or(ok, by_storage);
        }
        let any = self.has_flag(t.flags, flag::ANY_DTYPE);
        if self.has(Aspect::AnyDType) {
            ok = self.or(ok, any);
        }
        self.require_part(ok, ".dtype", &[EXPECTED_TEXT, GOT, of(Tag::DType, Field::Got)]);
        if !self.has(Aspect::DTypeCodes) && !self.has(Aspect::SameStorage) {
            // the copy has it
            return;
        }
        let accepted = self.b.select(any, dtype, wanted);
        let accepted = self.b.convert(ConvertOp::Truncate, Type::I32, accepted);
        self.b.store(accepted, t.copy, DTYPE, MemFlags::ALIGNED);
    }

    /// Whether bits and lanes are the same, and the code is one of those that will do.
    fn same_but_code(&mut self, rec: Value, dtype: Value, wanted: Value) -> Value {
        let codes = self.word(rec, tensor::DTYPE_CODES);
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
        self.set_field(Field::Got, device);
        let text = self.table_text(t.rec, tensor::DEVICE_TEXT);
        self.set_field(Field::Text, text);
        let wanted = self.word(t.rec, tensor::DEVICE_TYPE);
        let stated = self.word(t.rec, tensor::DEVICE_ID);
        let got = of(Tag::Device, Field::Got);
        let mut ok = None;
        if self.has(Aspect::DeviceType) {
            let device_type = self.word(t.from, DEVICE / 4);
            let any_type = self.b.icmp_imm(IntCC::SLt, wanted, 0);
            let same_type = self.b.icmp(IntCC::Eq, device_type, wanted);
            ok = Some(if self.has(Aspect::AnyDevice) { self.or(any_type, same_type) } else { same_type });
        }
        if self.has(Aspect::DeviceId) {
            let id = self.word(t.from, DEVICE / 4 + 1);
            let any_id = self.b.icmp_imm(IntCC::SLt, stated, 0);
            let same_id = self.b.icmp(IntCC::Eq, id, stated);
            let id_ok = self.or(any_id, same_id);
            ok = Some(ok.map_or(id_ok, |ok| self.and(ok, id_ok)));
        }
        if let Some(ok) = ok {
            self.require_part(ok, ".device", &[EXPECTED_TEXT, GOT, got]);
        }
        if !self.has(Aspect::SameDevice) {
            return;
        }
        // only a tensor that may be anywhere says where the others have to be
        let shared = self.is(stated, -1);
        self.when(shared, |r| {
            let slot = r.word(t.rec, tensor::DEVICE_SLOT);
            let note = r.device_note(slot);
            let bound = r.is_bound(note);
            r.when_else(
                bound,
                |r| {
                    let first = r.b.load(Type::I64, note, note::VALUE, MemFlags::ALIGNED);
                    let ok = r.b.icmp(IntCC::Eq, device, first);
                    r.set_field(Field::Expected, first);
                    let origin = r.b.ptr_add_imm(note, i64::from(note::PLACE));
                    r.set_field(Field::Origin, origin);
                    let parts = [
                        of(Tag::NumberedDevice, Field::Expected),
                        Part::Text(" (from "),
                        of(Tag::Path, Field::Origin),
                        Part::Text(".device), got "),
                        got,
                    ];
                    r.require_part(ok, ".device", &parts);
                },
                |r| r.bind_note(note, device),
            );
        });
    }

    pub(super) fn device_note(&mut self, slot: Value) -> Value {
        let notes = self.field_ptr(Field::Devices);
        let size = self.field(Field::NoteSize);
        self.nth_of(notes, slot, size)
    }

    pub(super) fn set_part(&mut self, part: &str) {
        let part = self.own_text(part);
        self.set_here(place::PART, part);
    }

    /// Contract 2: the first element's address is there and aligned, unless there are no elements; then the good path gets
    /// an aligned address that nobody may read.
    fn data(&mut self, t: Tensor) {
        let data = self.b.load(Type::I64, t.copy, DATA, MemFlags::ALIGNED);
        let byte_offset = self.b.load(Type::I64, t.copy, BYTE_OFFSET, MemFlags::ALIGNED);
        let empty = self.get(t.empty);
        let empty = self.is_not(empty, 0);
        let count = self.get(t.product);
        self.set_field(Field::Expected, count);
        let there = self.is_not(data, 0);
        let ok = self.or(there, empty);
        let parts = [Part::Text("a non-NULL pointer to "), EXPECTED_NUMBER, Part::Text(" elements, got NULL")];
        self.require_part(ok, ".data", &parts);

        let sum = self.b.binary(BinaryOp::Add, data, byte_offset);
        let opaque = self.may_be_opaque().then(|| self.is_opaque(t));
        let address = opaque.map_or(sum, |opaque| self.b.select(opaque, byte_offset, sum));
        let align = self.word(t.rec, tensor::ALIGN);
        let one = self.b.i64(1);
        let mask = self.b.binary(BinaryOp::Sub, align, one);
        let rest = self.and(address, mask);
        self.set_field(Field::Expected, align);
        self.set_field(Field::Got, rest);
        let mut text = self.own_text("data + byte_offset");
        if let Some(opaque) = opaque {
            let offset_alone = self.own_text("byte_offset");
            text = self.b.select(opaque, offset_alone, text);
        }
        self.set_field(Field::Text, text);
        let aligned = self.is(rest, 0);
        let ok = self.or(aligned, empty);
        let parts = [
            EXPECTED_TEXT,
            Part::Text(" to be a multiple of "),
            EXPECTED_NUMBER,
            Part::Text(", got one that is off by "),
            GOT_NUMBER,
        ];
        self.require_part(ok, ".data", &parts);

        let zero = self.b.i64(0);
        let fine = self.and(there, aligned);
        self.when_else(
            fine,
            |r| {
                if !r.has(Aspect::Fold) {
                    return;
                }
                let mut fold = r.has_flag(t.flags, flag::FOLD);
                if let Some(opaque) = opaque {
                    let direct = r.b.unary(UnaryOp::Not, opaque);
                    fold = r.and(fold, direct);
                }
                r.when(fold, |r| {
                    r.b.store(sum, t.copy, DATA, MemFlags::ALIGNED);
                    r.b.store(zero, t.copy, BYTE_OFFSET, MemFlags::ALIGNED);
                });
            },
            |r| {
                r.b.store(align, t.copy, DATA, MemFlags::ALIGNED);
                r.b.store(zero, t.copy, BYTE_OFFSET, MemFlags::ALIGNED);
            },
        );
    }

    fn may_be_opaque(&self) -> bool {
        self.has(Aspect::Opaque) || self.has(Aspect::AnyDevice)
    }

    /// Whether the data pointer is no address: as the signature says, or by the device that came.
    fn is_opaque(&mut self, t: Tensor) -> Value {
        let opaque = Var::new(&mut self.b, Type::I64);
        let stated = self.has_flag(t.flags, flag::OPAQUE);
        let stated_wide = self.b.convert(ConvertOp::ZExt, Type::I64, stated);
        self.set(opaque, stated_wide);
        let wanted = self.word(t.rec, tensor::DEVICE_TYPE);
        let any = self.b.icmp_imm(IntCC::SLt, wanted, 0);
        self.when(any, |r| {
            let device_type = r.word(t.from, DEVICE / 4);
            // kinds that don't exist are counted as `DLDeviceType::is_direct_address` does
            let mut direct = r.b.icmp_imm(IntCC::SLt, device_type, i64::from(*DEVICE_TYPES.start()));
            for kind in DEVICE_TYPES.map(DLDeviceType).filter(|kind| kind.is_direct_address()) {
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
