//! Tensors in [`bind`](super): contract 1 to 5 and 7.

use super::{Binder, Field, GOT, NOTE_NAME, of};
use crate::ir::{BinaryOp, ConvertOp, IntCC, MemFlags, Type, Value};
use crate::lower::messages::{Part, Tag};
use crate::lower::program::{NOTE, OPAQUE, STRIDED, entry, record, tensor};
use crate::lower::support::emit::{Emit, Var};
use crate::lower::tensor::{BYTE_OFFSET, DATA, DEVICE, DTYPE, NDIM, SHAPE, STRIDES};
use tvm_ffi_runtime::abi::{DLTensor, TVMFFIObject, TypeIndex};

/// Where a note has the place in the tensor that bound it. Its value is at 0, the tensor's name at [`NOTE_NAME`].
const NOTE_PART: i32 = 16;
const NOTE_DIM: i32 = 24;
const ORIGIN: [(Field, i32); 3] =
    [(Field::OriginName, NOTE_NAME), (Field::OriginPart, NOTE_PART), (Field::OriginDim, NOTE_DIM)];
const _: () = assert!(NOTE == NOTE_DIM as i64 + 8);

const HEADER: i64 = size_of::<TVMFFIObject>() as i64;
const SHAPE_PART: &str = ".shape[";
const STRIDES_PART: &str = ".strides[";

/// `.shape[0]`
const PLACE: [Part<'static>; 3] =
    [Part::Value(Tag::String, Field::Part as u32), Part::Value(Tag::Number, Field::Dim as u32), Part::Text("]")];

impl Binder<'_, '_> {
    /// Checks a tensor and writes one with a header's room before it and strides.
    pub(super) fn tensor(&mut self, rec: Value, type_index: Value, payload: Value, to: Value) {
        self.require_either(type_index, TypeIndex::TENSOR, TypeIndex::DL_TENSOR_PTR);
        let there = self.is_not(payload, 0);
        self.require_type(there, &[Part::Text("Tensor, got a NULL pointer to one")]);
        // an object's DLTensor follows its header (c_api.h, kTVMFFITensor)
        let base = self.b.convert(ConvertOp::IntToPtr, Type::Ptr, payload);
        let inside = self.b.ptr_add_imm(base, HEADER);
        let is_object = self.is(type_index, i64::from(TypeIndex::TENSOR.0));
        let from = self.b.select(is_object, inside, base);

        // The accepted argument is an object whose DLTensor is a copy; nobody reads its header.
        let copy = self.get(self.memory);
        let object = self.b.ptr_add_imm(copy, -HEADER);
        let object = self.b.convert(ConvertOp::PtrToInt, Type::I64, object);
        self.accept(to, TypeIndex::TENSOR, object);
        for offset in (0..size_of::<DLTensor>() as i32).step_by(8) {
            let word = self.b.load(Type::I64, from, offset, MemFlags::ALIGNED);
            self.b.store(word, copy, offset, MemFlags::ALIGNED);
        }
        let strides = self.b.ptr_add_imm(copy, size_of::<DLTensor>() as i64);

        let rank = self.word(rec, tensor::RANK);
        self.header(rec, from, rank);
        let shape = self.b.load(Type::Ptr, from, SHAPE, MemFlags::ALIGNED);
        self.shape(rec, rank, shape);
        self.strides(rec, rank, from, shape, strides);
        self.b.store(strides, copy, STRIDES, MemFlags::ALIGNED);
        self.data(rec, copy);

        let eight = self.b.i64(8);
        let size = self.b.binary(BinaryOp::Mul, rank, eight);
        let memory = self.b.ptr_add(strides, size);
        self.set(self.memory, memory);
        self.next_tensor(rec, rank);
    }

    /// Goes to the record after this tensor's.
    fn next_tensor(&mut self, rec: Value, rank: Value) {
        let flags = self.word(rec, tensor::FLAGS);
        let strided = self.has_flag(flags, STRIDED);
        let twice = self.b.binary(BinaryOp::Add, rank, rank);
        let entries = self.b.select(strided, twice, rank);
        let entry_size = self.b.i64(i64::from(4 * entry::SIZE));
        let size = self.b.binary(BinaryOp::Mul, entries, entry_size);
        self.advance(self.record, size);
        self.advance_imm(self.record, i64::from(4 * tensor::SIZE));
    }

    fn has_flag(&mut self, flags: Value, flag: u32) -> Value {
        let mask = self.b.i64(i64::from(flag));
        let set = self.and(flags, mask);
        self.is_not(set, 0)
    }

    /// ndim, dtype, device, and that there is a shape.
    fn header(&mut self, rec: Value, from: Value, rank: Value) {
        let (got, expected) = (of(Tag::Number, Field::Got), of(Tag::Number, Field::Expected));
        let ndim = self.word(from, NDIM / 4);
        self.set_field(Field::Got, ndim);
        self.set_field(Field::Expected, rank);
        let ok = self.b.icmp(IntCC::Eq, ndim, rank);
        self.require_of(ok, &[Part::Text(".ndim")], &[expected, GOT, got]);

        let dtype = self.word(from, DTYPE / 4);
        let wanted = self.word(rec, tensor::DTYPE);
        self.set_field(Field::Got, dtype);
        let text = self.table_text(rec, tensor::DTYPE_TEXT);
        self.set_field(Field::Text, text);
        let ok = self.b.icmp(IntCC::Eq, dtype, wanted);
        let text = of(Tag::String, Field::Text);
        self.require_of(ok, &[Part::Text(".dtype")], &[text, GOT, of(Tag::DType, Field::Got)]);

        self.device(rec, from);

        let shape = self.b.load(Type::Ptr, from, SHAPE, MemFlags::ALIGNED);
        self.set_field(Field::Expected, rank);
        let there = self.is_not(shape, 0);
        let scalar = self.is(rank, 0);
        let ok = self.or(there, scalar);
        let parts = [Part::Text("a non-NULL pointer for ndim "), expected, Part::Text(", got NULL")];
        self.require_of(ok, &[Part::Text(".shape")], &parts);
    }

    /// The kind of device, then its id: as stated, or that of the first tensor in the same slot.
    fn device(&mut self, rec: Value, from: Value) {
        let device = self.b.load(Type::I64, from, DEVICE, MemFlags::ALIGNED);
        self.set_field(Field::Got, device);
        let text = self.table_text(rec, tensor::DEVICE_TEXT);
        self.set_field(Field::Text, text);
        let low = self.b.convert(ConvertOp::Truncate, Type::I32, device);
        let device_type = self.b.convert(ConvertOp::SExt, Type::I64, low);
        let wanted = self.word(rec, tensor::DEVICE_TYPE);
        let stated = self.word(rec, tensor::DEVICE_ID);
        let thirty_two = self.b.i64(32);
        let id = self.b.binary(BinaryOp::AShr, device, thirty_two);
        let same_type = self.b.icmp(IntCC::Eq, device_type, wanted);
        let any_id = self.b.icmp_imm(IntCC::SLt, stated, 0);
        let same_id = self.b.icmp(IntCC::Eq, id, stated);
        let id_ok = self.or(any_id, same_id);
        let ok = self.and(same_type, id_ok);
        let (text, got) = (of(Tag::String, Field::Text), of(Tag::Device, Field::Got));
        self.require_of(ok, &[Part::Text(".device")], &[text, GOT, got]);

        let slot = self.word(rec, tensor::DEVICE_SLOT);
        let notes = self.get(self.devices);
        let note = self.note(notes, slot);
        let origin = self.b.load(Type::Ptr, note, NOTE_NAME, MemFlags::ALIGNED);
        let bound = self.is_not(origin, 0);
        let compared = self.and(bound, any_id);
        self.when(compared, |s| {
            let first = s.b.load(Type::I64, note, 0, MemFlags::ALIGNED);
            let ok = s.b.icmp(IntCC::Eq, id, first);
            s.set_field(Field::Expected, first);
            s.set_field(Field::OriginName, origin);
            let parts = [
                text,
                Part::Text(":"),
                of(Tag::Number, Field::Expected),
                Part::Text(" (from "),
                of(Tag::String, Field::OriginName),
                Part::Text(".device), got "),
                got,
            ];
            s.require_of(ok, &[Part::Text(".device")], &parts);
        });
        // only a tensor that may be anywhere says where the others have to be
        let unbound = self.is(origin, 0);
        let binds = self.and(unbound, any_id);
        self.when(binds, |s| {
            let name = s.table_text(rec, record::NAME);
            s.b.store(id, note, 0, MemFlags::ALIGNED);
            s.b.store(name, note, NOTE_NAME, MemFlags::ALIGNED);
        });
    }

    fn note(&mut self, notes: Value, index: Value) -> Value {
        let size = self.b.i64(NOTE);
        let offset = self.b.binary(BinaryOp::Mul, index, size);
        self.b.ptr_add(notes, offset)
    }

    /// Entry `index` of the record: the dimensions, then the strides.
    fn entry(&mut self, rec: Value, index: Value) -> Value {
        let size = self.b.i64(i64::from(4 * entry::SIZE));
        let offset = self.b.binary(BinaryOp::Mul, index, size);
        let first = self.b.ptr_add_imm(rec, i64::from(4 * tensor::SIZE));
        self.b.ptr_add(first, offset)
    }

    /// Sizes; notes whether any is 0, and requires every product of trailing sizes to fit.
    fn shape(&mut self, rec: Value, rank: Value, shape: Value) {
        let zero = self.b.i64(0);
        self.set(self.empty, zero);
        self.set(self.overflow, zero);
        let one = self.b.i64(1);
        self.set(self.product, one);
        self.set_text(Field::Part, SHAPE_PART);
        self.for_up(rank, |s, d| {
            let at = s.b.element(shape, d, Type::I64);
            let size = s.b.load(Type::I64, at, 0, MemFlags::ALIGNED);
            let never = s.b.bconst(false);
            s.dim(rec, d, d, size, never, true);
            let is_zero = s.is(size, 0);
            let is_zero = s.b.convert(ConvertOp::ZExt, Type::I64, is_zero);
            let before = s.get(s.empty);
            let empty = s.or(before, is_zero);
            s.set(s.empty, empty);
        });
        self.for_down(rank, |s, d| {
            let at = s.b.element(shape, d, Type::I64);
            let size = s.b.load(Type::I64, at, 0, MemFlags::ALIGNED);
            // fits where the upper half is 0 and the lower half not negative, as both factors are not negative
            let product = s.get(s.product);
            let upper = s.b.binary(BinaryOp::SMulHi, product, size);
            let lower = s.b.binary(BinaryOp::Mul, product, size);
            s.set(s.product, lower);
            let sixty_three = s.b.i64(63);
            let sign = s.b.binary(BinaryOp::LShr, lower, sixty_three);
            let before = s.get(s.overflow);
            let mark = s.or(upper, sign);
            let mark = s.or(before, mark);
            s.set(s.overflow, mark);
        });
        let overflow = self.get(self.overflow);
        let fits = self.is(overflow, 0);
        let parts = [Part::Text("sizes whose product fits in 64 bits, got an overflow")];
        self.require_of(fits, &[Part::Text(".shape")], &parts);
    }

    /// A size or stride against its entry: a constant, a symbol to compare with, or one to bind. `excused`, it need not match.
    /// Gives what the good path expects in its place.
    fn dim(&mut self, rec: Value, index: Value, d: Value, got: Value, excused: Value, size: bool) -> Value {
        let result = Var::new(&mut self.b, Type::I64);
        self.set(result, got);
        let (came, expected) = (of(Tag::Number, Field::Got), of(Tag::Number, Field::Expected));
        self.set_field(Field::Dim, d);
        self.set_field(Field::Got, got);
        let entry = self.entry(rec, index);
        let is_symbol = self.word(entry, entry::IS_SYMBOL);
        let is_symbol = self.is_not(is_symbol, 0);
        self.when_else(
            is_symbol,
            |s| {
                if size {
                    // also where a stride has bound the symbol, which may be negative
                    let ok = s.b.icmp_imm(IntCC::SGe, got, 0);
                    s.require_of(ok, &PLACE, &[Part::Text("a size of at least 0"), GOT, came]);
                }
                let symbol = s.word(entry, entry::VALUE);
                let notes = s.get(s.symbols);
                let note = s.note(notes, symbol);
                let origin = s.b.load(Type::Ptr, note, NOTE_NAME, MemFlags::ALIGNED);
                let bound = s.is_not(origin, 0);
                s.when_else(
                    bound,
                    |s| {
                        let value = s.b.load(Type::I64, note, 0, MemFlags::ALIGNED);
                        s.set(result, value);
                        s.set_field(Field::Expected, value);
                        let name = s.table_text(entry, entry::HIGH_OR_NAME);
                        s.set_field(Field::Symbol, name);
                        for (field, offset) in ORIGIN {
                            let value = s.b.load(Type::I64, note, offset, MemFlags::ALIGNED);
                            s.set_field(field, value);
                        }
                        let ok = s.b.icmp(IntCC::Eq, got, value);
                        let ok = s.or(ok, excused);
                        let parts = [
                            expected,
                            Part::Text(" ("),
                            of(Tag::String, Field::Symbol),
                            Part::Text(", from "),
                            of(Tag::String, Field::OriginName),
                            of(Tag::String, Field::OriginPart),
                            of(Tag::Number, Field::OriginDim),
                            Part::Text("]), got "),
                            came,
                        ];
                        s.require_of(ok, &PLACE, &parts);
                    },
                    |s| {
                        s.b.store(got, note, 0, MemFlags::ALIGNED);
                        for (field, offset) in
                            [Field::Name, Field::Part, Field::Dim].into_iter().zip([NOTE_NAME, NOTE_PART, NOTE_DIM])
                        {
                            let value = s.b.load(Type::I64, s.context, 8 * field as i32, MemFlags::ALIGNED);
                            s.b.store(value, note, offset, MemFlags::ALIGNED);
                        }
                    },
                );
            },
            |s| {
                let low = s.word(entry, entry::VALUE);
                let high = s.word(entry, entry::HIGH_OR_NAME);
                let mask = s.b.i64(0xffff_ffff);
                let low = s.and(low, mask);
                let thirty_two = s.b.i64(32);
                let high = s.b.binary(BinaryOp::Shl, high, thirty_two);
                let value = s.or(low, high);
                s.set(result, value);
                s.set_field(Field::Expected, value);
                let ok = s.b.icmp(IntCC::Eq, got, value);
                let ok = s.or(ok, excused);
                s.require_of(ok, &PLACE, &[expected, GOT, came]);
            },
        );
        self.get(result)
    }

    /// Contract 3 and 4: no strides mean compact ones; a size of 1 takes any stride, and an empty tensor any strides. Writes to
    /// `out` what the good path expects.
    fn strides(&mut self, rec: Value, rank: Value, from: Value, shape: Value, out: Value) {
        let one = self.b.i64(1);
        self.set(self.product, one);
        self.for_down(rank, |s, d| {
            let compact = s.get(s.product);
            let to = s.b.element(out, d, Type::I64);
            s.b.store(compact, to, 0, MemFlags::ALIGNED);
            let at = s.b.element(shape, d, Type::I64);
            let size = s.b.load(Type::I64, at, 0, MemFlags::ALIGNED);
            let product = s.b.binary(BinaryOp::Mul, compact, size);
            s.set(s.product, product);
        });
        let given = self.b.load(Type::Ptr, from, STRIDES, MemFlags::ALIGNED);
        let has = self.is_not(given, 0);
        let source = self.b.select(has, given, out);
        let empty = self.get(self.empty);
        let empty = self.is_not(empty, 0);
        let flags = self.word(rec, tensor::FLAGS);
        let stated = self.has_flag(flags, STRIDED);
        self.set_text(Field::Part, STRIDES_PART);
        self.for_up(rank, |s, d| {
            let at = s.b.element(source, d, Type::I64);
            let stride = s.b.load(Type::I64, at, 0, MemFlags::ALIGNED);
            let at = s.b.element(shape, d, Type::I64);
            let size = s.b.load(Type::I64, at, 0, MemFlags::ALIGNED);
            let single = s.is(size, 1);
            let excused = s.or(empty, single);
            let to = s.b.element(out, d, Type::I64);
            s.when_else(
                stated,
                |s| {
                    let index = s.b.binary(BinaryOp::Add, rank, d);
                    let accepted = s.dim(rec, index, d, stride, excused, false);
                    s.b.store(accepted, to, 0, MemFlags::ALIGNED);
                },
                |s| {
                    let compact = s.b.load(Type::I64, to, 0, MemFlags::ALIGNED);
                    s.set_field(Field::Dim, d);
                    s.set_field(Field::Got, stride);
                    s.set_field(Field::Expected, compact);
                    let same = s.b.icmp(IntCC::Eq, stride, compact);
                    let ok = s.or(same, excused);
                    let (expected, got) = (of(Tag::Number, Field::Expected), of(Tag::Number, Field::Got));
                    s.require_of(ok, &PLACE, &[expected, Part::Text(" (contiguous)"), GOT, got]);
                },
            );
        });
    }

    /// Contract 2: the first element's address is there and aligned, unless there are no elements; then the good path gets
    /// an aligned address that nobody may read.
    fn data(&mut self, rec: Value, copy: Value) {
        let data = self.b.load(Type::I64, copy, DATA, MemFlags::ALIGNED);
        let byte_offset = self.b.load(Type::I64, copy, BYTE_OFFSET, MemFlags::ALIGNED);
        let empty = self.get(self.empty);
        let empty = self.is_not(empty, 0);
        let count = self.get(self.product);
        self.set_field(Field::Expected, count);
        let there = self.is_not(data, 0);
        let ok = self.or(there, empty);
        let (expected, got) = (of(Tag::Number, Field::Expected), of(Tag::Number, Field::Got));
        let parts = [Part::Text("a non-NULL pointer to "), expected, Part::Text(" elements, got NULL")];
        self.require_of(ok, &[Part::Text(".data")], &parts);

        let flags = self.word(rec, tensor::FLAGS);
        let opaque = self.has_flag(flags, OPAQUE);
        let sum = self.b.binary(BinaryOp::Add, data, byte_offset);
        let address = self.b.select(opaque, byte_offset, sum);
        let align = self.word(rec, tensor::ALIGN);
        let one = self.b.i64(1);
        let mask = self.b.binary(BinaryOp::Sub, align, one);
        let rest = self.and(address, mask);
        self.set_field(Field::Expected, align);
        self.set_field(Field::Got, rest);
        let text = self.table_text(rec, tensor::ALIGN_TEXT);
        self.set_field(Field::Text, text);
        let aligned = self.is(rest, 0);
        let ok = self.or(aligned, empty);
        let parts = [
            of(Tag::String, Field::Text),
            Part::Text(" to be a multiple of "),
            expected,
            Part::Text(", got one that is off by "),
            got,
        ];
        self.require_of(ok, &[Part::Text(".data")], &parts);

        let fine = self.and(there, aligned);
        self.when_else(
            fine,
            |_| {},
            |s| {
                let zero = s.b.i64(0);
                s.b.store(align, copy, DATA, MemFlags::ALIGNED);
                s.b.store(zero, copy, BYTE_OFFSET, MemFlags::ALIGNED);
            },
        );
    }
}
