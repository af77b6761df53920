//! What [`report`](super::report) prints of places, and of symbols and where they come from.

use super::emit::{Emit, Var};
use super::report::Printer;
use super::state::State;
use crate::ir::{ConvertOp, IntCC, MemFlags, Type, UnaryOp, Value};
use crate::lower::messages::Tag;
use crate::lower::program::{Aspect, Kind, StepKind, expr, note, place, step, term};

impl<'m> State<'m> for Printer<'m, '_> {
    fn state(&self) -> Value {
        self.context
    }

    fn has_containers(&self) -> bool {
        self.has(Aspect::Elements)
    }
}

impl Printer<'_, '_> {
    /// The tags of which this is about.
    pub(super) fn places(&mut self, tag: Value, value: Value) {
        let address = self.b.convert(ConvertOp::IntToPtr, Type::Ptr, value);
        self.on_either(tag, Tag::Path, Tag::Place, |p| {
            p.path(address);
            p.on(tag, Tag::Place, |p| p.dimension(address));
        });
        self.on(tag, Tag::Bindings, |p| p.bindings(address));
        self.on(tag, Tag::Unknown, |p| p.unknown(address));
    }

    /// `xs[3][1]`
    fn path(&mut self, place: Value) {
        if self.has(Aspect::Elements) {
            self.steps(place);
        }
        let name = self.b.load(Type::Ptr, place, place::NAME, MemFlags::ALIGNED);
        self.push(name);
    }

    fn steps(&mut self, place: Value) {
        let depth = self.b.load(Type::I64, place, place::DEPTH, MemFlags::ALIGNED);
        self.for_up(depth, |p, index| {
            let step = p.nth(place, index, step::SIZE);
            let load = |p: &mut Self, ty, word| p.b.load(ty, step, place::STEPS + word, MemFlags::ALIGNED);
            let name = load(p, Type::Ptr, step::NAME);
            p.push(name);
            let kind = load(p, Type::I64, step::KIND);
            let value = load(p, Type::I64, step::VALUE);
            let numbered = |p: &mut Self, open| {
                p.push_text(open);
                p.push_number(value);
                p.push_text("]");
            };
            p.on_step(kind, StepKind::Index, |p| numbered(p, "["));
            if !p.has(Kind::Map) {
                return;
            }
            p.on_step(kind, StepKind::Key, |p| numbered(p, ".keys()["));
            p.on_step(kind, StepKind::Other, |p| p.push_text("[...]"));
            p.on_step(kind, StepKind::Text, |p| {
                let text = p.b.convert(ConvertOp::IntToPtr, Type::Ptr, value);
                p.push_text("[\"");
                p.push(text);
                p.push_text("\"]");
            });
        });
    }

    fn on_step(&mut self, kind: Value, which: StepKind, then: impl FnOnce(&mut Self)) {
        let is = self.is(kind, which as i64);
        self.when(is, then);
    }

    /// `xs[3].shape[0]`
    fn place(&mut self, place: Value) {
        self.path(place);
        self.dimension(place);
    }

    fn dimension(&mut self, place: Value) {
        let part = self.b.load(Type::Ptr, place, place::PART, MemFlags::ALIGNED);
        let has_part = self.is_not(part, 0);
        self.when(has_part, |p| {
            p.push(part);
            let dim = p.b.load(Type::I64, place, place::DIM, MemFlags::ALIGNED);
            p.push_number(dim);
            p.push_text("]");
        });
    }

    /// Runs `then` for each symbol of an expression that has a value (or none), with its name, its note, and how many came before it.
    fn symbols(&mut self, expr: Value, bound: bool, then: impl FnOnce(&mut Self, Value, Value, Value)) {
        let terms = self.word(expr, expr::TERMS);
        let count = Var::new(&mut self.b, Type::I64);
        let zero = self.b.i64(0);
        self.set(count, zero);
        self.for_up(terms, |p, index| {
            let term = p.nth(expr, index, 4 * term::SIZE);
            let symbol = p.word(term, expr::SIZE + term::SYMBOL);
            let note = p.note(symbol);
            let origin = p.b.load(Type::Ptr, note, note::PLACE + place::NAME, MemFlags::ALIGNED);
            let is_bound = p.is_not(origin, 0);
            let wanted = if bound { is_bound } else { p.b.unary(UnaryOp::Not, is_bound) };
            p.when(wanted, |p| {
                let name = p.table_text(term, expr::SIZE + term::NAME);
                let before = p.get(count);
                then(p, name, note, before);
                p.advance_imm(count, 1);
            });
        });
    }

    /// `m = 3 from x.shape[0], n = 4 from y.shape[1]`
    fn bindings(&mut self, expr: Value) {
        self.symbols(expr, true, |p, name, note, before| {
            let later = p.is_not(before, 0);
            p.when(later, |p| p.push_text(", "));
            p.push(name);
            p.push_text(" = ");
            let value = p.b.load(Type::I64, note, note::VALUE, MemFlags::ALIGNED);
            p.push_number(value);
            p.push_text(" from ");
            let origin = p.b.ptr_add_imm(note, i64::from(note::PLACE));
            p.place(origin);
        });
    }

    /// `k, m and n`
    fn unknown(&mut self, expr: Value) {
        let count = Var::new(&mut self.b, Type::I64);
        let minus_one = self.b.i64(-1);
        self.set(count, minus_one);
        self.symbols(expr, false, |p, _, _, _| p.advance_imm(count, 1));
        let last = self.get(count);
        self.symbols(expr, false, |p, name, _, before| {
            let later = p.is_not(before, 0);
            p.when(later, |p| {
                let is_last = p.b.icmp(IntCC::Eq, before, last);
                p.when_else(is_last, |p| p.push_text(" and "), |p| p.push_text(", "));
            });
            p.push(name);
        });
    }
}
