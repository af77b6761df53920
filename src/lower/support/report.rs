//! `int32_t report(const void* table, uint32_t row, const uint64_t* context)`: reads a [row](super::super::messages), notes texts and
//! numbers in its frame, makes a C string of each, raises them by `TVMFFIErrorSetRaisedFromCStrParts`, which copies
//! them, and returns -1.

use super::super::messages::{MAX_PARTS, Messages, Tag};
use super::super::program::{Aspect, Feature, Features};
use super::emit::{Emit, Var};
use super::names::NameList;
use super::{REPORT_SYMBOL, Table};
use crate::ir::{
    BinaryOp, ConvertOp, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, MemFlags, Module, Type, Value,
};

/// The most C strings that a message may be made of; what more there is is left out. Long are lists of symbols.
const CAPACITY: usize = 160;
const _: () = assert!(CAPACITY > 4 * MAX_PARTS);
/// Bytes of a note: the address of a text, or NULL and a number. The finished strings take the place of the notes.
const NOTE: i64 = 16;
/// Room for a 64-bit number in decimal, its sign and a NUL.
const CELL: i64 = 24;

pub(in super::super) fn signature() -> FuncSig {
    FuncSig::new([Type::Ptr, Type::I32, Type::Ptr], Some(Type::I32))
}

/// Defines the routine where it is imported; `table` will hold `texts`, in which all rows are.
pub(super) fn define(module: &mut Module, linkage: Linkage, table: Table, texts: &mut Messages) {
    let Some(report) = super::defined_here(module, REPORT_SYMBOL, linkage) else { return };
    let set_raised =
        module.import("TVMFFIErrorSetRaisedFromCStrParts", FuncSig::c([Type::Ptr, Type::Ptr, Type::I32], None));
    let features = texts.features;
    let mut b = FunctionBuilder::new(module, report);
    let notes = b.slot((NOTE as usize * CAPACITY) as u32, 8);
    let mut printer = Printer {
        notes: b.stack_addr(notes),
        next: Var::new(&mut b, Type::Ptr),
        context: b.param(2),
        table,
        b,
        texts,
        features,
    };
    printer.run();
    let parts = printer.finish_parts();
    let kind = printer.kind();
    let failed = printer.raise(set_raised, kind, parts);
    printer.b.ret(Some(failed));
    printer.b.finish();
}

pub(super) struct Printer<'m, 't> {
    pub(super) b: FunctionBuilder<'m>,
    pub(super) texts: &'t mut Messages,
    pub(super) features: Features,
    table: Table,
    /// Notes of what the message is made of, and where the next goes.
    notes: Value,
    next: Var,
    pub(super) context: Value,
}

impl<'m> Emit<'m> for Printer<'m, '_> {
    fn builder(&mut self) -> &mut FunctionBuilder<'m> {
        &mut self.b
    }
}

impl Printer<'_, '_> {
    /// Goes through the row; then the current block is where it has come to its end.
    fn run(&mut self) {
        let word = Var::new(&mut self.b, Type::Ptr);
        let row = self.row();
        self.set(word, row);
        let notes = self.notes;
        self.set(self.next, notes);
        let (head, part, done) = (self.b.block(), self.b.block(), self.b.block());
        self.b.jump(head, &[]);

        self.b.switch_to(head);
        self.advance_imm(word, 4);
        let at = self.get(word);
        let bits = self.word(at, 0);
        let more = self.is_not(bits, 0);
        self.b.branch(more, part, done, Hint::None);

        self.b.switch_to(part);
        let shift = self.b.i64(24);
        let tag = self.b.binary(BinaryOp::LShr, bits, shift);
        let mask = self.b.i64((1 << 24) - 1);
        let operand = self.and(bits, mask);
        let is_text = self.is(tag, Tag::Text as i64);
        let (text, value) = (self.b.block(), self.b.block());
        self.b.branch(is_text, text, value, Hint::None);
        self.b.switch_to(text);
        let base = self.b.param(0);
        let string = self.b.ptr_add(base, operand);
        self.push(string);
        self.b.jump(head, &[]);
        self.b.switch_to(value);
        let context = self.context;
        let field = self.b.element(context, operand, Type::I64);
        self.value(tag, field);
        self.b.jump(head, &[]);
        self.b.switch_to(done);
    }

    fn row(&mut self) -> Value {
        let (base, row) = (self.b.param(0), self.b.param(1));
        let row = self.b.convert(ConvertOp::ZExt, Type::I64, row);
        self.b.ptr_add(base, row)
    }

    /// The text of the error's kind.
    fn kind(&mut self) -> Value {
        let row = self.row();
        let kind = self.word(row, 0);
        let base = self.b.param(0);
        self.b.ptr_add(base, kind)
    }

    /// Makes C strings of the notes, in their place; gives how many there are.
    fn finish_parts(&mut self) -> Value {
        let cells = self.b.slot(CELL as u32 * CAPACITY as u32, 8);
        let cells = self.b.stack_addr(cells);
        let (head, one, number, put, done) =
            (self.b.block(), self.b.block(), self.b.block(), self.b.block(), self.b.block());
        let (at, to, cell) = (
            self.b.block_param(head, Type::Ptr),
            self.b.block_param(head, Type::Ptr),
            self.b.block_param(head, Type::Ptr),
        );
        let (string, free) = (self.b.block_param(put, Type::Ptr), self.b.block_param(put, Type::Ptr));
        let notes = self.notes;
        let behind = self.b.ptr_add_imm(cells, CELL * CAPACITY as i64);
        self.b.jump(head, &[notes, notes, behind]);
        self.b.switch_to(head);
        let end = self.get(self.next);
        let more = self.b.icmp(IntCC::Ne, at, end);
        self.b.branch(more, one, done, Hint::None);
        self.b.switch_to(one);
        let text = self.b.load(Type::Ptr, at, 0, MemFlags::ALIGNED);
        let is_text = self.is_not(text, 0);
        self.b.branch_with(is_text, (put, &[text, cell]), (number, &[]), Hint::None);
        self.b.switch_to(number);
        let value = self.b.load(Type::I64, at, 8, MemFlags::ALIGNED);
        let start = self.decimal(cell, value);
        self.b.jump(put, &[start, start]);
        self.b.switch_to(put);
        self.b.store(string, to, 0, MemFlags::ALIGNED);
        let (next, next_to) = (self.b.ptr_add_imm(at, NOTE), self.b.ptr_add_imm(to, 8));
        self.b.jump(head, &[next, next_to, free]);
        self.b.switch_to(done);
        let [from, to] = [notes, to].map(|address| self.b.convert(ConvertOp::PtrToInt, Type::I64, address));
        let bytes = self.b.binary(BinaryOp::Sub, to, from);
        let three = self.b.i64(3);
        let count = self.b.binary(BinaryOp::LShr, bytes, three);
        self.b.convert(ConvertOp::Truncate, Type::I32, count)
    }

    fn raise(&mut self, set_raised: FuncRef, kind: Value, count: Value) -> Value {
        let parts = self.notes;
        self.b.call(set_raised, &[kind, parts, count]);
        self.b.iconst(Type::I32, -1)
    }

    /// Writes a number in decimal before `end`; gives its start.
    fn decimal(&mut self, end: Value, value: Value) -> Value {
        let b = &mut self.b;
        let negative = b.icmp_imm(IntCC::SLt, value, 0);
        let zero = b.i64(0);
        // the least value is its own negative, and right as an unsigned number
        let negated = b.binary(BinaryOp::Sub, zero, value);
        let magnitude = b.select(negative, negated, value);
        let end = b.ptr_add_imm(end, -1);
        let nul = b.iconst(Type::I8, 0);
        b.store(nul, end, 0, MemFlags::ALIGNED);
        let (digits, sign, minus, done) = (b.block(), b.block(), b.block(), b.block());
        let at = b.block_param(digits, Type::Ptr);
        let rest = b.block_param(digits, Type::I64);
        let start = b.block_param(done, Type::Ptr);
        b.jump(digits, &[end, magnitude]);
        b.switch_to(digits);
        let ten = b.i64(10);
        let quotient = b.binary(BinaryOp::UDiv, rest, ten);
        let whole = b.binary(BinaryOp::Mul, quotient, ten);
        let digit = b.binary(BinaryOp::Sub, rest, whole);
        let ascii_zero = b.i64(i64::from(b'0'));
        let digit = b.binary(BinaryOp::Add, digit, ascii_zero);
        let digit = b.convert(ConvertOp::Truncate, Type::I8, digit);
        let before = b.ptr_add_imm(at, -1);
        b.store(digit, before, 0, MemFlags::ALIGNED);
        let more = b.icmp_imm(IntCC::Ne, quotient, 0);
        b.branch_with(more, (digits, &[before, quotient]), (sign, &[]), Hint::None);
        b.switch_to(sign);
        b.branch_with(negative, (minus, &[]), (done, &[before]), Hint::None);
        b.switch_to(minus);
        let dash = b.iconst(Type::I8, i64::from(b'-'));
        let first = b.ptr_add_imm(before, -1);
        b.store(dash, first, 0, MemFlags::ALIGNED);
        b.jump(done, &[first]);
        b.switch_to(done);
        start
    }

    pub(super) fn has(&self, feature: impl Into<Feature>) -> bool {
        self.features.has(feature)
    }

    /// Pushes a field of the context as the tag says.
    fn value(&mut self, tag: Value, field: Value) {
        let value = self.b.load(Type::I64, field, 0, MemFlags::ALIGNED);
        self.on(tag, Tag::String, |p| {
            let string = p.b.convert(ConvertOp::IntToPtr, Type::Ptr, value);
            p.push(string);
        });
        self.on(tag, Tag::Number, |p| p.push_number(value));
        self.on(tag, Tag::DType, |p| p.dtype(value));
        self.on_either(tag, Tag::Device, Tag::NumberedDevice, |p| p.device(value, tag));
        self.on(tag, Tag::Quoted, |p| {
            let data = p.b.convert(ConvertOp::IntToPtr, Type::Ptr, value);
            let size = p.b.load(Type::I64, field, 8, MemFlags::ALIGNED);
            let copy = p.copy(data, size);
            p.push_text("\"");
            p.push(copy);
            p.push_text("\"");
        });
        self.places(tag, value);
        self.on(tag, Tag::Type, |p| {
            let payload = p.b.load(Type::I64, field, 8, MemFlags::ALIGNED);
            p.type_name(value, payload);
        });
    }

    pub(super) fn on(&mut self, tag: Value, which: Tag, then: impl FnOnce(&mut Self)) {
        if !self.has(which) {
            return;
        }
        let is = self.is(tag, which as i64);
        self.when(is, then);
    }

    pub(super) fn on_either(&mut self, tag: Value, one: Tag, other: Tag, then: impl FnOnce(&mut Self)) {
        match (self.has(one), self.has(other)) {
            (true, true) => {
                let (first, second) = (self.is(tag, one as i64), self.is(tag, other as i64));
                let either = self.or(first, second);
                self.when(either, then);
            }
            (true, false) => self.on(tag, one, then),
            (false, _) => self.on(tag, other, then),
        }
    }

    /// Notes something, where there is room.
    fn note(&mut self, write: impl FnOnce(&mut Self, Value)) {
        let write = |p: &mut Self| {
            let next = p.get(p.next);
            write(p, next);
            p.advance_imm(p.next, NOTE);
        };
        // without lists of symbols and steps into containers, a row's parts are too few for it to run out
        if ![Tag::Bindings, Tag::Unknown].into_iter().any(|tag| self.has(tag)) && !self.has(Aspect::Elements) {
            return write(self);
        }
        let (next, notes) = (self.get(self.next), self.notes);
        let end = self.b.ptr_add_imm(notes, NOTE * CAPACITY as i64);
        let room = self.b.icmp(IntCC::Ne, next, end);
        self.when(room, write);
    }

    pub(super) fn push(&mut self, string: Value) {
        self.note(|p, note| p.b.store(string, note, 0, MemFlags::ALIGNED));
    }

    /// An address in the table that has the routine's own texts.
    fn own(&mut self, offset: u32) -> Value {
        if self.table.is_callers {
            let base = self.b.param(0);
            return self.b.ptr_add_imm(base, i64::from(offset));
        }
        self.b.data_addr(self.table.data, offset)
    }

    pub(super) fn push_text(&mut self, text: &str) {
        let offset = self.texts.text(text);
        let string = self.own(offset);
        self.push(string);
    }

    pub(super) fn push_number(&mut self, value: Value) {
        self.note(|p, note| {
            let none = p.b.ptr_const(0);
            p.b.store(none, note, 0, MemFlags::ALIGNED);
            p.b.store(value, note, 8, MemFlags::ALIGNED);
        });
    }

    /// Pushes a name, or what `unknown` pushes where the list has none at that index.
    pub(super) fn push_name_or(&mut self, names: NameList, index: Value, unknown: impl FnOnce(&mut Self)) {
        let (head, one, scan, found) = (self.b.block(), self.b.block(), self.b.block(), self.b.block());
        let (at, rest) = (self.b.block_param(head, Type::Ptr), self.b.block_param(head, Type::I64));
        let character = self.b.block_param(scan, Type::Ptr);
        // behind the last is an empty one
        let len = self.b.i64(names.len);
        let index = self.b.binary(BinaryOp::UMin, index, len);
        let first = self.own(names.offset);
        self.b.jump(head, &[first, index]);
        self.b.switch_to(head);
        let more = self.is_not(rest, 0);
        self.b.branch(more, one, found, Hint::None);
        self.b.switch_to(one);
        let one_less = self.b.i64(-1);
        let rest = self.b.binary(BinaryOp::Add, rest, one_less);
        self.b.jump(scan, &[at]);
        self.b.switch_to(scan);
        let byte = self.b.load(Type::I8, character, 0, MemFlags::ALIGNED);
        let behind = self.b.ptr_add_imm(character, 1);
        let is_end = self.b.icmp_imm(IntCC::Eq, byte, 0);
        self.b.branch_with(is_end, (head, &[behind, rest]), (scan, &[behind]), Hint::None);
        self.b.switch_to(found);
        let byte = self.b.load(Type::I8, at, 0, MemFlags::ALIGNED);
        let named = self.b.icmp_imm(IntCC::Ne, byte, 0);
        self.when_else(named, |p| p.push(at), unknown);
    }
}
