//! `int32_t bind(const void* table, uint32_t program, const TVMFFIAny* args, int64_t num_args, void* scratch)`: checks a call's
//! arguments exactly, by the [program](crate::lower::program) of the signature and in the contract's order.
//!
//! Where all are acceptable it writes an argument array to the scratch memory that the wrapper's good path
//! accepts without a doubt, and returns 0: an int for a float parameter becomes a float, a `DLTensor*` or a tensor without
//! strides becomes one with a header and compact strides. Else it raises the first mismatch and returns -1.

mod tensors;

use super::emit::{Emit, Var};
use super::{BIND_SYMBOL, Table};
use crate::ir::{
    BinaryOp, Block, ConvertOp, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, MemFlags, Module, Type, Value,
};
use crate::lower::messages::{Messages, Part, Tag};
use crate::lower::program::{Kind, NOTE, header, record, scalar};
use crate::lower::wrapper::{ANY_SIZE, PAYLOAD, TYPE_INDEX};
use tvm_ffi_runtime::abi::TypeIndex;

/// Kinds of errors, by the contract's point 8.
const TYPE_ERROR: &str = "TypeError";
const VALUE_ERROR: &str = "ValueError";

pub(in crate::lower) fn signature() -> FuncSig {
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

/// Where a note has the name of the tensor that bound it; NULL if none did.
const NOTE_NAME: i32 = 8;

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
            let double = s.b.convert(ConvertOp::SIntToFloat, Type::F64, payload);
            // rounded once: a `float32` doesn't come by way of `float64`
            let single = s.b.convert(ConvertOp::SIntToFloat, Type::F32, payload);
            let single = s.b.convert(ConvertOp::FPromote, Type::F64, single);
            let unused = s.word(rec, scalar::UNUSED_BITS);
            let is_double = s.is(unused, 0);
            let converted = s.b.select(is_double, double, single);
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
}
