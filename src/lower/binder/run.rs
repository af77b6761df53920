//! `bind` itself.

use super::emit::{Condition, Emit, Var};
use super::finish;
use super::routine::{Binder, GOT, TYPE_ERROR, of};
use super::state::State;
use crate::ir::{BinaryOp, ConvertOp, IntCC, MemFlags, Type, Value};
use crate::lower::abi::{ANY_SIZE, PAYLOAD, TYPE_INDEX};
use crate::lower::protocol::Field;
use crate::lower::protocol::state;
use crate::lower::protocol::{Aspect, default, header, named, note, place, rest, waiting};
use crate::lower::protocol::{Part, Tag};
use tvm_ffi_runtime::abi::{TVMFFIByteArray, TypeIndex};

pub(super) fn run(r: &mut Binder<'_, '_>) {
    let (table, args, num_args, scratch) = (r.b.param(0), r.b.param(2), r.b.param(3), r.b.param(4));
    let offset = r.b.param(1);
    let offset = r.b.convert(ConvertOp::ZExt, Type::I64, offset);
    let program = r.b.ptr_add(table, offset);
    let count = r.number(program, header::PARAMS);
    let any_size = r.b.i64(i64::from(ANY_SIZE));
    let args_size = r.b.binary(BinaryOp::Mul, count, any_size);
    r.state = r.base(scratch, args_size);
    r.set_field(Field::Table, table);
    arity(r, program, args, num_args, count);
    lay_out(r, program);

    let first = r.b.ptr_add_imm(program, i64::from(4 * header::SIZE));
    let defaults = r.has(Aspect::Default).then(|| {
        let filled = r.b.slot(ANY_SIZE as u32, 8);
        (r.b.stack_addr(filled), Var::new(&mut r.b, Type::Ptr))
    });
    r.for_up(count, |r, index| {
        r.set_field(Field::Arg, index);
        let mut from = r.nth(args, index, ANY_SIZE);
        if let Some((filled, place)) = defaults {
            let given = r.b.icmp(IntCC::SLt, index, num_args);
            r.when_else(
                given,
                |r| r.set(place, from),
                |r| {
                    fill(r, program, index, filled);
                    r.set(place, filled);
                },
            );
            from = r.get(place);
        }
        let (named, to) = (r.nth(first, index, 4 * named::SIZE), r.nth(scratch, index, ANY_SIZE));
        r.check(named, from, to);
        if r.has(Aspect::Verbatim) {
            let verbatim = r.number(program, header::VERBATIM);
            let verbatim = r.is_not(verbatim, 0);
            r.when(verbatim, |r| {
                for offset in [TYPE_INDEX, PAYLOAD] {
                    let word = r.b.load(Type::I64, from, offset, MemFlags::ALIGNED);
                    r.b.store(word, to, offset, MemFlags::ALIGNED);
                }
            });
        }
    });
    finish::finish(r, program);
    r.succeed();
}

/// The call as such.
fn arity(r: &mut Binder<'_, '_>, program: Value, args: Value, num_args: Value, count: Value) {
    let calling = r.table_text(program, header::CALLING);
    r.set_field(Field::Calling, calling);
    let calling = of(Tag::String, Field::Calling);
    let least = r.number(program, header::LEAST);
    let enough = r.b.icmp(IntCC::SGe, num_args, least);
    let not_more = r.b.icmp(IntCC::SLe, num_args, count);
    let ok = Condition::All(vec![enough, not_more]);
    let (expected, got) = (of(Tag::String, Field::Text), of(Tag::Number, Field::Got));
    let parts = [Part::Text("Mismatched number of arguments"), calling, expected, GOT, got];
    r.require_telling(ok, TYPE_ERROR, &parts, |r| {
        let expected = r.table_text(program, header::ARITY);
        r.set_field(Field::Text, expected);
        r.set_field(Field::Got, num_args);
    });
    let there = r.is_not(args, 0);
    let none = r.is(num_args, 0);
    let there = Condition::Any(vec![there, none]);
    let text = Part::Text("a non-NULL pointer, got NULL");
    r.require(there, TYPE_ERROR, &[Part::Text("Mismatched argument array"), calling, text]);
}

/// Finds room for notes and what else is needed behind the state, and clears the notes.
fn lay_out(r: &mut Binder<'_, '_>, program: Value) {
    let here = r.here();
    r.set_field(Field::Here, here);
    let zero = r.b.i64(0);
    if r.has(Aspect::Elements) {
        r.set_here(place::DEPTH, zero);
    }
    for (field, aspect) in
        [(Field::WaitingCount, Aspect::Expr), (Field::Strict, Aspect::Elements), (Field::Pass, Aspect::Expr)]
    {
        if r.has(aspect) {
            r.set_field(field, zero);
        }
    }
    let end = Var::new(&mut r.b, Type::Ptr);
    let notes = r.b.ptr_add_imm(r.state, state::SIZE);
    r.set(end, notes);
    let room = |r: &mut Binder<'_, '_>, many: Value, size: Value| {
        let start = r.get(end);
        let bytes = r.b.binary(BinaryOp::Mul, many, size);
        r.advance(end, bytes);
        start
    };
    // notes and what comes behind them in the order of the program's own count of bytes, `program::encode`
    let symbols = r.number(program, header::SYMBOLS);
    if r.has(Aspect::Elements) {
        let note_size = r.number(program, header::NOTE_SIZE);
        r.set_field(Field::NoteSize, note_size);
    }
    let note_size = r.note_size();
    room(r, symbols, note_size);
    let devices = r.number(program, header::DEVICES);
    let device_notes = room(r, devices, note_size);
    r.set_field(Field::Devices, device_notes);
    // those of devices come right behind those of symbols
    let behind = r.get(end);
    r.for_each(notes, behind, note_size, |r, note| {
        let (unbound, zero) = (r.b.ptr_const(0), r.b.i64(0));
        r.b.store(unbound, note, note::PLACE + place::NAME, MemFlags::ALIGNED);
        // what a kernel gets for a symbol that has no value
        r.b.store(zero, note, note::VALUE, MemFlags::ALIGNED);
    });

    if r.has(Aspect::Expr) {
        // both have a place in them
        let difference = r.b.i64(i64::from(waiting::PLACE - note::PLACE));
        let waiting_size = r.b.binary(BinaryOp::Add, note_size, difference);
        r.set_field(Field::WaitingSize, waiting_size);
        let many = r.number(program, header::WAITING);
        let waiting = room(r, many, waiting_size);
        r.set_field(Field::Waiting, waiting);
    }
    let memory = r.get(end);
    r.set_field(Field::Memory, memory);
}

/// Writes the default of a parameter that was left out.
fn fill(r: &mut Binder<'_, '_>, program: Value, index: Value, to: Value) {
    let table = r.field_ptr(Field::Table);
    let first = r.word(program, rest::DEFAULTS);
    let first = r.b.ptr_add(table, first);
    let least = r.number(program, header::LEAST);
    let number = r.b.binary(BinaryOp::Sub, index, least);
    let from = r.nth(first, number, 4 * default::SIZE);
    let type_index = r.word(from, default::TYPE_INDEX);
    let (low, high) = (r.word(from, default::PAYLOAD), r.word(from, default::PAYLOAD + 1));
    let plain = r.halves(low, high);
    r.accept_raw(to, type_index, plain);
    let text = r.b.ptr_add(table, low);
    if r.has(Aspect::DefaultStr) {
        let is = r.is(type_index, i64::from(TypeIndex::RAW_STR.0));
        r.when(is, |r| r.accept_raw(to, type_index, text));
    }
    if !r.has(Aspect::DefaultBytes) {
        return;
    }
    let is = r.is(type_index, i64::from(TypeIndex::BYTE_ARRAY_PTR.0));
    r.when(is, |r| {
        let array = r.take_memory(size_of::<TVMFFIByteArray>() as i64);
        r.b.store(text, array, 0, MemFlags::ALIGNED);
        r.b.store(high, array, 8, MemFlags::ALIGNED);
        r.accept_raw(to, type_index, array);
    });
}
