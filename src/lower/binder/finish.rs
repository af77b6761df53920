//! What is decided once all parameters have been looked at: dimensions that wait, constraints, the sizes of a returned tensor.

use super::dims;
use super::emit::{Emit, Var};
use super::routine::{Binder, EXPECTED_TEXT, GOT_NUMBER, VALUE_ERROR};
use super::state::State;
use crate::ir::{IntCC, MemFlags, Type, Value};
use crate::lower::protocol::Field;
use crate::lower::protocol::state::Pass;
use crate::lower::protocol::{Aspect, constraint, expr, header, note, rest, term, waiting};
use crate::lower::protocol::{Part, Tag};

const CALLING: Part<'static> = Part::Value(Tag::String, Field::Calling as u32);
const BINDINGS: Part<'static> = Part::Value(Tag::Bindings, Field::Expr as u32);
const UNKNOWN: Part<'static> = Part::Value(Tag::Unknown, Field::Expr as u32);

pub(super) fn finish(r: &mut Binder<'_, '_>, program: Value) {
    if r.has(Aspect::Expr) {
        wait(r);
    }
    if !r.has(Aspect::Constraint) && !r.has(Aspect::ResultDim) {
        return;
    }
    let has_rest = r.number(program, header::HAS_REST);
    let has_rest = r.is_not(has_rest, 0);
    r.when(has_rest, |r| {
        if r.has(Aspect::Constraint) {
            constraints(r, program);
        }
        if r.has(Aspect::ResultDim) {
            result(r, program);
        }
    });
}

/// Goes through what waits, as often as there is something that does: each time the first of them may get its value.
fn wait(r: &mut Binder<'_, '_>) {
    let count = r.field(Field::WaitingCount);
    r.set_number(Field::Pass, Pass::Again as i64);
    r.for_up(count, |r, _| look(r, count));
    r.set_number(Field::Pass, Pass::Last as i64);
    look(r, count);
}

fn look(r: &mut Binder<'_, '_>, count: Value) {
    r.for_up(count, |r, index| {
        let (all, size) = (r.field_ptr(Field::Waiting), r.field(Field::WaitingSize));
        let dim = r.nth_of(all, index, size);
        let entry = r.b.load(Type::Ptr, dim, waiting::ENTRY, MemFlags::ALIGNED);
        let waits = r.is_not(entry, 0);
        r.when(waits, |r| {
            let place = r.b.ptr_add_imm(dim, i64::from(waiting::PLACE));
            let here = r.here();
            r.copy_place(place, here);
            let arg = r.b.load(Type::I64, dim, waiting::ARG, MemFlags::ALIGNED);
            r.set_field(Field::Arg, arg);
            let got = r.b.load(Type::I64, dim, waiting::GOT, MemFlags::ALIGNED);
            // the flag is 1, so that it is all flags of a size
            const _: () = assert!(dims::IS_SIZE == 1);
            let is_size = r.b.load(Type::I64, dim, waiting::IS_SIZE, MemFlags::ALIGNED);
            r.dim(entry, got, is_size);
            let decided = r.field(Field::HasValue);
            let decided = r.is(decided, super::eval::HAS_VALUE);
            r.when(decided, |r| {
                let done = r.b.ptr_const(0);
                r.b.store(done, dim, waiting::ENTRY, MemFlags::ALIGNED);
            });
        });
    });
}

/// Sets the expression that is looked at, and requires that each of its symbols has a value.
fn look_at(r: &mut Binder<'_, '_>, expr: Value, no_value: &[Part<'_>]) {
    r.set_field(Field::Expr, expr);
    let text = r.table_text(expr, expr::TEXT);
    r.set_field(Field::Text, text);
    let (unknown, _) = r.unknown(expr);
    let ok = r.is(unknown, 0);
    r.require(ok, VALUE_ERROR, no_value);
}

fn constraints(r: &mut Binder<'_, '_>, program: Value) {
    let count = r.word(program, rest::CONSTRAINTS);
    let first = r.table_text(program, rest::FIRST_CONSTRAINT);
    r.for_up(count, |r, index| {
        let constraint = r.nth(first, index, 4 * constraint::SIZE);
        let expr = r.table_text(constraint, constraint::EXPR);
        let mismatch = [Part::Text("Mismatched constraint"), CALLING, EXPECTED_TEXT];
        look_at(r, expr, &[&mismatch[..], &[Part::Text(", got no value of "), UNKNOWN]].concat());
        let zero = r.b.i64(0);
        let (left, has_left) = r.value_of(expr, expr::CODE, zero);
        let (right, has_right) = r.value_of(constraint, constraint::RIGHT, zero);
        let (one, two, four) = (r.b.i64(1), r.b.i64(2), r.b.i64(4));
        let less = r.b.icmp(IntCC::SLt, left, right);
        let equal = r.b.icmp(IntCC::Eq, left, right);
        let order = r.b.select(equal, two, four);
        let order = r.b.select(less, one, order);
        let accepts = r.word(constraint, constraint::ACCEPTS);
        let accepted = r.and(accepts, order);
        let ok = r.is_not(accepted, 0);
        let ok = r.and(ok, has_left);
        let ok = r.and(ok, has_right);
        r.require(ok, VALUE_ERROR, &[&mismatch[..], &[Part::Text(", got "), BINDINGS]].concat());
    });
}

/// Sizes are not negative, and every product of the last ones fits.
fn result(r: &mut Binder<'_, '_>, program: Value) {
    let rank = r.word(program, rest::RESULT_DIMS);
    let first = r.table_text(program, rest::FIRST_RESULT_DIM);
    let size_of = |r: &mut Binder<'_, '_>, d: Value| {
        let at = r.b.element(first, d, Type::I32);
        r.table_text(at, 0)
    };
    let dim = Part::Value(Tag::Number, Field::Expected as u32);
    let mismatch = [Part::Text("Mismatched result.shape["), dim, Part::Text("]"), CALLING];
    let with = |more: &[Part<'static>]| [&mismatch[..], more].concat();
    r.for_up(rank, |r, d| {
        r.set_field(Field::Expected, d);
        let expr = size_of(r, d);
        look_at(r, expr, &with(&[Part::Text("a size of at least 0, got no value of "), UNKNOWN]));
        let zero = r.b.i64(0);
        let (size, has_value) = r.value_of(expr, expr::CODE, zero);
        let in_64_bits = [EXPECTED_TEXT, Part::Text(" in 64 bits ("), BINDINGS, Part::Text("), got none")];
        r.require(has_value, VALUE_ERROR, &with(&in_64_bits));
        r.set_field(Field::Got, size);
        let natural = r.b.icmp_imm(IntCC::SGe, size, 0);
        // equal texts are stored once: an expression that is called as its symbol is that
        let (text, name) = (r.word(expr, expr::TEXT), r.word(expr, expr::SIZE + term::NAME));
        let alone = r.b.icmp(IntCC::Eq, text, name);
        let symbol = r.word(expr, expr::SIZE + term::SYMBOL);
        let note = r.note(symbol);
        let origin = r.b.ptr_add_imm(note, i64::from(note::PLACE));
        r.set_field(Field::Origin, origin);
        let negative = |more: [Part<'static>; 2]| {
            let [sep, what] = more;
            let size = [Part::Text("a size of at least 0, got "), GOT_NUMBER, Part::Text(" ("), EXPECTED_TEXT];
            with(&[&size[..], &[sep, what, Part::Text(")")]].concat())
        };
        let fine_or_alone = r.or(natural, alone);
        r.require(fine_or_alone, VALUE_ERROR, &negative([Part::Text(", "), BINDINGS]));
        let from = Part::Value(Tag::Place, Field::Origin as u32);
        r.require(natural, VALUE_ERROR, &negative([Part::Text(", from "), from]));
    });
    let product = Var::new(&mut r.b, Type::I64);
    let one = r.b.i64(1);
    r.set(product, one);
    let fits = Var::new(&mut r.b, Type::I64);
    r.set(fits, one);
    r.for_down(rank, |r, d| {
        let expr = size_of(r, d);
        let zero = r.b.i64(0);
        let (size, _) = r.value_of(expr, expr::CODE, zero);
        let before = r.get(product);
        let (next, ok) = r.product_fits(before, size);
        r.set(product, next);
        let before = r.get(fits);
        let still = r.b.select(ok, before, zero);
        r.set(fits, still);
    });
    let fits = r.get(fits);
    let ok = r.is_not(fits, 0);
    let text = Part::Text("sizes whose product fits in 64 bits, got an overflow");
    r.require(ok, VALUE_ERROR, &[Part::Text("Mismatched result.shape"), CALLING, text]);
}
