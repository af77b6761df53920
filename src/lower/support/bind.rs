//! `int32_t bind(const void* table, uint32_t program, const TVMFFIAny* args, int64_t num_args, void* scratch)`: checks a call's
//! arguments exactly, by the [program](super::super::program) of the signature and in the contract's order.
//!
//! Where all are acceptable it writes an argument array to the scratch memory that the wrapper's good path
//! accepts without a doubt, and returns 0: an int for a float parameter becomes a float, a `DLTensor*` or a tensor without
//! strides becomes one with a header and compact strides. Else it raises the first mismatch and returns -1.

use super::super::messages::{Messages, Part, Tag};
use super::super::program::{Kind, NOTE, OPAQUE, STRIDED, entry, header, record, scalar, tensor};
use super::super::tensor::{BYTE_OFFSET, DATA, DEVICE, DTYPE, NDIM, SHAPE, STRIDES};
use super::super::wrapper::{ANY_SIZE, PAYLOAD, TYPE_INDEX};
use super::emit::{Emit, Var};
use super::{BIND_SYMBOL, Table};
use crate::ir::{
    BinaryOp, Block, ConvertOp, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, MemFlags, Module, Type, Value,
};
use tvm_ffi_runtime::abi::{DLTensor, TVMFFIObject, TypeIndex};

/// Kinds of errors, by the contract's point 8.
const TYPE_ERROR: &str = "TypeError";
const VALUE_ERROR: &str = "ValueError";

pub(in super::super) fn signature() -> FuncSig {
    FuncSig::new([Type::Ptr, Type::I32, Type::Ptr, Type::I64, Type::Ptr], Some(Type::I32))
}

/// Fields of the report's context.
#[derive(Clone, Copy)]
enum Field {
    /// What came; for a type the payload follows.
    Got,
    Payload,
    /// What was expected, as a number.
    Expected,
    /// What was expected, as text.
    Text,
    Arg,
    Calling,
    /// The parameter's name.
    Name,
    /// `.shape[` or `.strides[`
    Part,
    Dim,
    /// A symbol and the place that bound it.
    Symbol,
    OriginName,
    OriginPart,
    OriginDim,
}
const FIELDS: u32 = Field::OriginDim as u32 + 1;

/// Where a note has the name of the tensor that bound it (NULL if none did), and the place there. Its value is at 0.
const NOTE_NAME: i32 = 8;
const NOTE_PART: i32 = 16;
const NOTE_DIM: i32 = 24;
const ORIGIN: [(Field, i32); 3] =
    [(Field::OriginName, NOTE_NAME), (Field::OriginPart, NOTE_PART), (Field::OriginDim, NOTE_DIM)];
const _: () = assert!(NOTE == NOTE_DIM as i64 + 8);

const HEADER: i64 = size_of::<TVMFFIObject>() as i64;
const SHAPE_PART: &str = ".shape[";
const STRIDES_PART: &str = ".strides[";

/// Defines the routine; `table` will hold `texts`.
pub(super) fn define(
    module: &mut Module,
    linkage: Linkage,
    table: Table,
    texts: &mut Messages,
    report: FuncRef,
) -> FuncRef {
    let bind = module.declare(BIND_SYMBOL, signature(), linkage);
    module.functions[bind].cold = true;
    let mut b = FunctionBuilder::new(module, bind);
    let context = b.slot(8 * FIELDS, 8);
    let fail = b.cold_block();
    let row = b.block_param(fail, Type::I32);
    let mut binder = Binder {
        table: b.param(0),
        context: b.stack_addr(context),
        record: Var::new(&mut b, Type::Ptr),
        memory: Var::new(&mut b, Type::Ptr),
        empty: Var::new(&mut b, Type::I64),
        product: Var::new(&mut b, Type::I64),
        overflow: Var::new(&mut b, Type::I64),
        symbols: Var::new(&mut b, Type::Ptr),
        devices: Var::new(&mut b, Type::Ptr),
        fail,
        own: table,
        texts,
        b,
    };
    binder.run();
    binder.b.switch_to(fail);
    let own = binder.b.data_addr(table, 0);
    let context = binder.context;
    let code = binder.b.call(report, &[own, row, context]);
    binder.b.ret(code);
    binder.b.finish()
}

struct Binder<'m, 't> {
    b: FunctionBuilder<'m>,
    texts: &'t mut Messages,
    own: Table,
    /// Takes a row, and raises it.
    fail: Block,
    /// The wrapper's table.
    table: Value,
    context: Value,
    /// The parameter's record.
    record: Var,
    /// Free scratch memory for tensors.
    memory: Var,
    /// Whether the tensor has an extent of 0.
    empty: Var,
    product: Var,
    overflow: Var,
    /// Notes on symbols and devices; see [`NOTE_NAME`].
    symbols: Var,
    devices: Var,
}

impl<'m> Emit<'m> for Binder<'m, '_> {
    fn builder(&mut self) -> &mut FunctionBuilder<'m> {
        &mut self.b
    }
}

/// A part of a message that is a field of the context.
fn of(tag: Tag, field: Field) -> Part<'static> {
    Part::Value(tag, field as u32)
}

/// ` on argument #1 when calling: ..., expected `
const ON: [Part<'static>; 3] = [
    Part::Text(" on argument #"),
    Part::Value(Tag::Number, Field::Arg as u32),
    Part::Value(Tag::String, Field::Calling as u32),
];
/// `.shape[0]`
const PLACE: [Part<'static>; 3] =
    [Part::Value(Tag::String, Field::Part as u32), Part::Value(Tag::Number, Field::Dim as u32), Part::Text("]")];
const GOT: Part<'static> = Part::Text(", got ");

impl Binder<'_, '_> {
    fn set_field(&mut self, field: Field, value: Value) {
        let value = match self.b.type_of(value) {
            Type::Ptr => self.b.convert(ConvertOp::PtrToInt, Type::I64, value),
            _ => value,
        };
        self.b.store(value, self.context, 8 * field as i32, MemFlags::ALIGNED);
    }

    fn set_text(&mut self, field: Field, text: &str) {
        let offset = self.texts.text(text);
        let address = self.b.data_addr(self.own, offset);
        self.set_field(field, address);
    }

    /// The text at the offset in word `index` of the wrapper's table.
    fn table_text(&mut self, base: Value, index: i32) -> Value {
        let offset = self.word(base, index);
        self.b.ptr_add(self.table, offset)
    }

    /// Goes on where `cond` holds, else raises.
    fn require(&mut self, cond: Value, kind: &str, parts: &[Part<'_>]) {
        let row = self.texts.row(kind, parts);
        let (ok, bad) = (self.b.block(), self.b.cold_block());
        self.b.branch(cond, ok, bad, Hint::Likely);
        self.b.switch_to(bad);
        let row = self.b.iconst(Type::I32, i64::from(row));
        self.b.jump(self.fail, &[row]);
        self.b.switch_to(ok);
    }

    /// Requires a property of the parameter: `Mismatched {name}{what} on argument ..., expected {expected}`.
    fn require_of(&mut self, cond: Value, what: &[Part<'_>], expected: &[Part<'_>]) {
        let parts = [&[Part::Text("Mismatched "), of(Tag::String, Field::Name)][..], what, &ON, expected].concat();
        self.require(cond, VALUE_ERROR, &parts);
    }

    /// Requires a type: `Mismatched type of {name} on argument ..., expected {expected}`.
    fn require_type(&mut self, cond: Value, expected: &[Part<'_>]) {
        let parts = [&[Part::Text("Mismatched type of "), of(Tag::String, Field::Name)][..], &ON, expected].concat();
        self.require(cond, TYPE_ERROR, &parts);
    }

    fn run(&mut self) {
        let (args, num_args, scratch) = (self.b.param(2), self.b.param(3), self.b.param(4));
        let offset = self.b.param(1);
        let offset = self.b.convert(ConvertOp::ZExt, Type::I64, offset);
        let program = self.b.ptr_add(self.table, offset);
        let count = self.word(program, header::PARAMS);
        let calling = self.table_text(program, header::CALLING);
        self.set_field(Field::Calling, calling);
        self.set_field(Field::Got, num_args);
        self.set_field(Field::Expected, count);

        let enough = self.b.icmp(IntCC::Eq, num_args, count);
        let calling = of(Tag::String, Field::Calling);
        let (expected, got) = (of(Tag::Number, Field::Expected), of(Tag::Number, Field::Got));
        self.require(enough, TYPE_ERROR, &[Part::Text("Mismatched number of arguments"), calling, expected, GOT, got]);
        let there = self.is_not(args, 0);
        let none = self.is(count, 0);
        let there = self.or(there, none);
        let text = Part::Text("a non-NULL pointer, got NULL");
        self.require(there, TYPE_ERROR, &[Part::Text("Mismatched argument array"), calling, text]);
        // The good path refused what this routine had made for it: the two disagree, and would do so forever.
        let fresh = self.b.icmp(IntCC::Ne, args, scratch);
        let text = Part::Text("an argument array that was accepted before; this is a bug of tvm-ffi-codegen");
        self.require(fresh, "InternalError", &[Part::Text("Mismatched wrapper"), calling, text]);

        self.lay_out(program, count, scratch);
        let first = self.b.ptr_add_imm(program, i64::from(4 * header::SIZE));
        self.set(self.record, first);
        self.for_up(count, |s, index| {
            s.set_field(Field::Arg, index);
            let any_size = s.b.i64(i64::from(ANY_SIZE));
            let offset = s.b.binary(BinaryOp::Mul, index, any_size);
            let from = s.b.ptr_add(args, offset);
            let to = s.b.ptr_add(scratch, offset);
            s.param(from, to);
        });
        let done = self.b.iconst(Type::I32, 0);
        self.b.ret(Some(done));
    }

    /// Finds room for notes and tensors behind the arguments, and clears the notes.
    fn lay_out(&mut self, program: Value, count: Value, scratch: Value) {
        let any_size = self.b.i64(i64::from(ANY_SIZE));
        let offset = self.b.binary(BinaryOp::Mul, count, any_size);
        let start = self.b.ptr_add(scratch, offset);
        let note = self.b.i64(NOTE);
        let symbols = self.word(program, header::SYMBOLS);
        let devices = self.word(program, header::DEVICES);
        self.set(self.symbols, start);
        let size = self.b.binary(BinaryOp::Mul, symbols, note);
        let start_of_devices = self.b.ptr_add(start, size);
        self.set(self.devices, start_of_devices);
        let size = self.b.binary(BinaryOp::Mul, devices, note);
        let memory = self.b.ptr_add(start_of_devices, size);
        self.set(self.memory, memory);
        let notes = self.b.binary(BinaryOp::Add, symbols, devices);
        self.for_up(notes, |s, index| {
            let note = s.b.i64(NOTE);
            let offset = s.b.binary(BinaryOp::Mul, index, note);
            let at = s.b.ptr_add(start, offset);
            let unbound = s.b.ptr_const(0);
            s.b.store(unbound, at, NOTE_NAME, MemFlags::ALIGNED);
        });
    }

    /// Checks one argument and writes the accepted one.
    fn param(&mut self, from: Value, to: Value) {
        let rec = self.get(self.record);
        let name = self.table_text(rec, record::NAME);
        self.set_field(Field::Name, name);
        let text = self.table_text(rec, record::TEXT);
        self.set_field(Field::Text, text);
        let type_index = self.word(from, TYPE_INDEX / 4);
        let payload = self.b.load(Type::I64, from, PAYLOAD, MemFlags::ALIGNED);
        self.set_field(Field::Got, type_index);
        self.set_field(Field::Payload, payload);
        let kind = self.word(rec, record::KIND);
        let is_tensor = self.is(kind, Kind::Tensor as i64);
        self.when_else(
            is_tensor,
            |s| s.tensor(rec, type_index, payload, to),
            |s| {
                s.scalar(rec, kind, type_index, payload, to);
                s.advance_imm(s.record, i64::from(4 * scalar::SIZE));
            },
        );
    }

    /// Writes an argument: type index, zero padding, payload.
    fn accept(&mut self, to: Value, type_index: TypeIndex, payload: Value) {
        let type_index = self.b.i64(i64::from(type_index.0));
        self.b.store(type_index, to, TYPE_INDEX, MemFlags::ALIGNED);
        self.b.store(payload, to, PAYLOAD, MemFlags::ALIGNED);
    }

    fn require_either(&mut self, type_index: Value, one: TypeIndex, other: TypeIndex) {
        let ok = self.is_either(type_index, i64::from(one.0), i64::from(other.0));
        self.require_accepted(ok);
    }

    fn require_accepted(&mut self, ok: Value) {
        self.require_type(ok, &[of(Tag::String, Field::Text), GOT, of(Tag::Type, Field::Got)]);
    }

    /// Contract 6, by upstream's converters (`tvm/ffi/type_traits.h`).
    fn scalar(&mut self, rec: Value, kind: Value, type_index: Value, payload: Value, to: Value) {
        let is = self.is(kind, Kind::Float as i64);
        self.when(is, |s| {
            let is_float = s.is(type_index, i64::from(TypeIndex::FLOAT.0));
            let is_int = s.is_either(type_index, i64::from(TypeIndex::INT.0), i64::from(TypeIndex::BOOL.0));
            let ok = s.or(is_float, is_int);
            s.require_accepted(ok);
            let converted = s.b.convert(ConvertOp::SIntToFloat, Type::F64, payload);
            let converted = s.b.convert(ConvertOp::Bitcast, Type::I64, converted);
            let value = s.b.select(is_float, payload, converted);
            s.accept(to, TypeIndex::FLOAT, value);
        });
        let is = self.is(kind, Kind::Bool as i64);
        self.when(is, |s| {
            s.require_either(type_index, TypeIndex::BOOL, TypeIndex::INT);
            let value = s.is_not(payload, 0);
            let value = s.b.convert(ConvertOp::ZExt, Type::I64, value);
            s.accept(to, TypeIndex::BOOL, value);
        });
        let is = self.is(kind, Kind::Handle as i64);
        self.when(is, |s| {
            s.require_either(type_index, TypeIndex::OPAQUE_PTR, TypeIndex::NONE);
            // None is NULL, whatever its payload
            let given = s.is(type_index, i64::from(TypeIndex::OPAQUE_PTR.0));
            let null = s.b.i64(0);
            let value = s.b.select(given, payload, null);
            s.accept(to, TypeIndex::OPAQUE_PTR, value);
        });
        let is = self.is_either(kind, Kind::Signed as i64, Kind::Unsigned as i64);
        self.when(is, |s| {
            s.require_either(type_index, TypeIndex::INT, TypeIndex::BOOL);
            s.range(rec, kind, payload);
            s.accept(to, TypeIndex::INT, payload);
        });
    }

    /// A narrow integer fits where shifting its unused bits out and back changes nothing.
    fn range(&mut self, rec: Value, kind: Value, payload: Value) {
        let unused = self.word(rec, scalar::UNUSED_BITS);
        let up = self.b.binary(BinaryOp::Shl, payload, unused);
        let signed = self.b.binary(BinaryOp::AShr, up, unused);
        let unsigned = self.b.binary(BinaryOp::LShr, up, unused);
        let is_signed = self.is(kind, Kind::Signed as i64);
        let back = self.b.select(is_signed, signed, unsigned);
        let fits = self.b.icmp(IntCC::Eq, back, payload);
        let range = self.table_text(rec, scalar::RANGE);
        self.set_field(Field::Text, range);
        self.set_field(Field::Got, payload);
        let parts = [
            &[Part::Text("Mismatched value of "), of(Tag::String, Field::Name)][..],
            &ON,
            &[of(Tag::String, Field::Text), GOT, of(Tag::Number, Field::Got)],
        ];
        self.require(fits, VALUE_ERROR, &parts.concat());
    }

    fn tensor(&mut self, rec: Value, type_index: Value, payload: Value, to: Value) {
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
