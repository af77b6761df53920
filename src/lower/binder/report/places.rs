//! What [`report`](super) prints of places, and of symbols and where they come from.

use super::printer::Printer;
use crate::ir::{BinaryOp, IntCC, MemFlags, Type, UnaryOp, Value};
use crate::lower::abi::{CELL_DATA, CELL_SIZE, PAYLOAD, TYPE_INDEX};
use crate::lower::binder::emit::{Emit, Var};
use crate::lower::binder::state::State;
use crate::lower::protocol::Field;
use crate::lower::protocol::{Aspect, Kind, StepKind, expr, note, place, step, term};
use crate::lower::protocol::{Part, Tag};
use tvm_ffi_runtime::abi::TypeIndex;

impl<'m> State<'m> for Printer<'m, '_> {
    fn state(&self) -> Value {
        // that of `bind`, whatever row is gone through
        self.b.param(2)
    }

    fn has_containers(&self) -> bool {
        self.has(Aspect::Elements)
    }
}

/// The value at so many bytes in a place or step that is a row's context.
const fn at(tag: Tag, offset: i32) -> Part<'static> {
    Part::Value(tag, offset as u32 / 8)
}

/// What is noted of a symbol for the row that prints it.
mod symbol {
    pub const NAME: u32 = 0;
    pub const VALUE: u32 = 1;
    pub const ORIGIN: u32 = 2;
}

/// What is noted of a step to the value of a key that is a str.
mod key {
    pub const NAME: u32 = 0;
    pub const TEXT: u32 = 1;
}

const SYMBOL: Part<'static> = Part::Value(Tag::String, symbol::NAME);

impl Printer<'_, '_> {
    /// The tags of which this is about.
    pub(super) fn places(&mut self, byte: Value) {
        self.on_either(byte, [Tag::Bindings, Tag::Unknown], |p, unknown| p.symbols(unknown));
        if self.has(Aspect::Elements) {
            self.on_tag_there(byte, Tag::Steps, |p| p.steps());
        }
    }

    /// A place in a field: the last that a byte may be.
    pub(super) fn place(&mut self, byte: Value, place: Value) {
        // `xs[3][1]`
        let mut path = vec![at(Tag::String, place::NAME)];
        if self.has(Aspect::Elements) {
            path.insert(0, Part::Value(Tag::Steps, 0));
        }
        // `xs[3].shape[0]`; there is no dimension where there is nothing before it
        const _: () = assert!(place::PART == 8);
        let unless = Part::Value(Tag::Unless, 1);
        let dimension = [unless, at(Tag::String, place::PART), at(Tag::Number, place::DIM), Part::Text("]")];
        let whole = [&path[..], &dimension].concat();
        let go_through = |p: &mut Self, parts: &[Part<'_>]| {
            let row = p.own_row(parts);
            p.enter(row, place);
        };
        match (self.has(Tag::Path), self.has(Tag::Place)) {
            (true, true) => {
                let is_path = self.b.icmp_imm(IntCC::ULt, byte, i64::from(Tag::Place.code(0)));
                self.on(is_path, |p| go_through(p, &path));
                go_through(self, &whole);
            }
            (true, false) => go_through(self, &path),
            (false, true) => go_through(self, &whole),
            (false, false) => self.go_on(),
        }
    }

    /// Goes through the row of the next step into a container, and comes back for the one behind it, if there is one.
    fn steps(&mut self) {
        let place = self.get(self.context);
        let depth = self.b.load(Type::I64, place, place::DEPTH, MemFlags::ALIGNED);
        let index = self.get(self.step);
        let more = self.b.icmp(IntCC::SLt, index, depth);
        self.on(more, |p| {
            p.advance_imm(p.step, 1);
            p.advance_imm(p.at, -1);
            let step = p.nth(place, index, step::SIZE);
            let step = p.b.ptr_add_imm(step, i64::from(place::STEPS));
            p.step(step);
        });
        let first = self.b.i64(0);
        self.set(self.step, first);
    }

    /// Goes through the row of a step.
    fn step(&mut self, step: Value) {
        let (name, value) = (at(Tag::String, step::NAME), at(Tag::Number, step::VALUE));
        let mut row = self.own_row(&[name, Part::Text("["), value, Part::Text("]")]);
        if !self.has(Kind::Map) {
            return self.enter(row, step);
        }
        let kind = self.b.load(Type::I64, step, step::KIND, MemFlags::ALIGNED);
        for (which, parts) in [
            (StepKind::Key, &[name, Part::Text(".keys()["), value, Part::Text("]")][..]),
            (StepKind::Other, &[name, Part::Text("[...]")]),
        ] {
            let is = self.is(kind, which as i64);
            let its = self.own_row(parts);
            row = self.b.select(is, its, row);
        }
        let is_text = self.is(kind, StepKind::Text as i64);
        self.on(is_text, |p| p.text_step(step));
        self.enter(row, step);
    }

    /// Goes through the row of a step to the value of a key that is a str.
    fn text_step(&mut self, step: Value) {
        let key = self.b.load(Type::Ptr, step, step::VALUE, MemFlags::ALIGNED);
        let (data, size) = (Var::new(&mut self.b, Type::Ptr), Var::new(&mut self.b, Type::I64));
        let index = self.word32(key, TYPE_INDEX / 4);
        let small = self.b.icmp_imm(IntCC::Eq, index, i64::from(TypeIndex::SMALL_STR.0));
        self.when_else(
            small,
            |p| {
                let inside = p.b.ptr_add_imm(key, i64::from(PAYLOAD));
                p.set(data, inside);
                let length = p.word(key, 1);
                p.set(size, length);
            },
            |p| {
                let object = p.b.load(Type::Ptr, key, PAYLOAD, MemFlags::ALIGNED);
                let inside = p.b.load(Type::Ptr, object, CELL_DATA, MemFlags::ALIGNED);
                p.set(data, inside);
                let length = p.b.load(Type::I64, object, CELL_SIZE, MemFlags::ALIGNED);
                p.set(size, length);
            },
        );
        let (data, size) = (self.get(data), self.get(size));
        let text = self.copy_text(data, size);
        let name = self.b.load(Type::I64, step, step::NAME, MemFlags::ALIGNED);
        let notes = self.notes();
        for (word, value) in [(key::NAME, name), (key::TEXT, text)] {
            self.b.store(value, notes, 8 * word as i32, MemFlags::ALIGNED);
        }
        let [name, text] = [key::NAME, key::TEXT].map(|word| Part::Value(Tag::String, word));
        let row = self.own_row(&[name, Part::Text("[\""), text, Part::Text("\"]")]);
        self.enter(row, notes);
    }

    /// Goes through the row of the expression's next symbol that has a value (or has none, for `unknown` of 1), and comes back for
    /// the one behind it, if there is one: `m = 3 from x.shape[0], n = 4 from y.shape[1]`, or `k, m and n`.
    fn symbols(&mut self, unknown: Value) {
        let bound = self.is(unknown, 0);
        let expr = self.field_ptr(Field::Expr);
        let start = self.get(self.index);
        let terms = self.word(expr, expr::TERMS);
        // the next, and how many there are from it on
        let (next, count) = (Var::new(&mut self.b, Type::I64), Var::new(&mut self.b, Type::I64));
        let zero = self.b.i64(0);
        self.set(next, zero);
        self.set(count, zero);
        self.for_up(terms, |p, index| {
            let term = p.nth(expr, index, 4 * term::SIZE);
            let symbol = p.word(term, expr::SIZE + term::SYMBOL);
            let note = p.note(symbol);
            let origin = p.b.load(Type::Ptr, note, note::PLACE + place::NAME, MemFlags::ALIGNED);
            let is_bound = p.is_not(origin, 0);
            let differs = p.b.binary(BinaryOp::Xor, is_bound, bound);
            let same = p.b.unary(UnaryOp::Not, differs);
            let behind = p.b.icmp(IntCC::SGe, index, start);
            let wanted = p.and(same, behind);
            p.when(wanted, |p| {
                let (before, known) = (p.get(count), p.get(next));
                let first = p.is(before, 0);
                let first = p.b.select(first, index, known);
                p.set(next, first);
                p.advance_imm(count, 1);
            });
        });
        let (next, count) = (self.get(next), self.get(count));
        let some = self.is_not(count, 0);
        let room = self.has_room();
        let more = room.map_or(some, |room| self.and(some, room));
        self.on(more, |p| {
            let one = p.b.i64(1);
            let behind = p.b.binary(BinaryOp::Add, next, one);
            p.set(p.index, behind);
            p.advance_imm(p.at, -1);
            let term = p.nth(expr, next, 4 * term::SIZE);
            let name = p.table_text(term, expr::SIZE + term::NAME);
            let symbol = p.word(term, expr::SIZE + term::SYMBOL);
            let note = p.note(symbol);
            let value = p.b.load(Type::I64, note, note::VALUE, MemFlags::ALIGNED);
            let origin = p.b.ptr_add_imm(note, i64::from(note::PLACE));
            let notes = p.notes();
            for (word, value) in [(symbol::NAME, name), (symbol::VALUE, value), (symbol::ORIGIN, origin)] {
                p.b.store(value, notes, 8 * word as i32, MemFlags::ALIGNED);
            }
            let is_first = p.is(start, 0);
            let row = p.symbol_row(bound, is_first, count);
            p.enter(row, notes);
        });
        self.set(self.index, zero);
    }

    /// The row of a symbol, with what is between it and the one before.
    fn symbol_row(&mut self, bound: Value, is_first: Value, count: Value) -> Value {
        let (comma, and) = (Part::Text(", "), Part::Text(" and "));
        let (value, origin) = (Part::Value(Tag::Number, symbol::VALUE), Part::Value(Tag::Place, symbol::ORIGIN));
        let binding = self.own_row(&[comma, SYMBOL, Part::Text(" = "), value, Part::Text(" from "), origin]);
        let (name, last) = (self.own_row(&[comma, SYMBOL]), self.own_row(&[and, SYMBOL]));
        let is_last = self.is(count, 1);
        let unknown = self.b.select(is_last, last, name);
        let row = self.b.select(bound, binding, unknown);
        // the first has nothing before it
        let binding = self.b.ptr_add_imm(binding, TEXT_LEN);
        let name = self.b.ptr_add_imm(name, TEXT_LEN);
        let first = self.b.select(bound, binding, name);
        self.b.select(is_first, first, row)
    }
}

/// Bytes of `, ` in a row.
const TEXT_LEN: i64 = 3;
