//! `dim`: a size or stride against its entry. Contract 4 and 5.

use super::eval::{HAS_VALUE, NO_VALUE, ZERO_DIVISOR};
use super::{Binder, EXPECTED_NUMBER, Field, GOT, GOT_NUMBER, VALUE_ERROR, of};
use crate::ir::{BinaryOp, ConvertOp, IntCC, MemFlags, Type, UnaryOp, Value};
use crate::lower::messages::{Part, Tag};
use crate::lower::program::{Aspect, Entry, StepKind, entry, expr, note, place, step, term, waiting};
use crate::lower::support::emit::{Emit, Var};
use crate::lower::support::state::{Pass, State};

/// Flags of a dimension: it is a size, and so not negative.
pub(super) const IS_SIZE: i64 = 1;
/// It need not be what it should be.
pub(super) const EXCUSED: i64 = 2;

/// `.shape[0]`
const PLACE: [Part<'static>; 1] = [Part::Value(Tag::Place, Field::Here as u32)];

/// `10 (n, from x.shape[0])`
pub(super) fn expected_symbol() -> [Part<'static>; 6] {
    [
        EXPECTED_NUMBER,
        Part::Text(" ("),
        of(Tag::String, Field::Symbol),
        Part::Text(", from "),
        of(Tag::Place, Field::Origin),
        Part::Text(")"),
    ]
}

/// `int32_t dim(State*, const uint32_t* entry, int64_t got, int64_t flags)`; writes what the good path expects to [`Field::Accepted`].
pub(super) fn dim(r: &mut Binder<'_, '_>) {
    let (entry, got, flags) = (r.b.param(1), r.b.param(2), r.b.param(3));
    r.look_at_dim(entry, got, flags);
    r.succeed();
}

/// A dimension that is looked at.
#[derive(Clone, Copy)]
struct Dim {
    entry: Value,
    got: Value,
    size: Value,
    excused: Value,
}

impl Binder<'_, '_> {
    /// Looks at a dimension.
    pub(super) fn dim(&mut self, entry: Value, got: Value, flags: Value) {
        match self.routines.dim {
            Some(dim) => self.call_or_fail(dim, &[self.state, entry, got, flags]),
            None => self.look_at_dim(entry, got, flags),
        }
    }

    fn look_at_dim(&mut self, entry: Value, got: Value, flags: Value) {
        let one = self.b.i64(IS_SIZE);
        let size = self.and(flags, one);
        let size = self.is_not(size, 0);
        let two = self.b.i64(EXCUSED);
        let excused = self.and(flags, two);
        let excused = self.is_not(excused, 0);
        let d = Dim { entry, got, size, excused };
        self.set_field(Field::Got, got);
        self.accept_dim(got);
        let kind = self.word(entry, entry::KIND);
        let is_const = self.is(kind, Entry::Const as i64);
        let named = self.has(Aspect::Symbol) || self.has(Aspect::Expr);
        if self.has(Aspect::Const) {
            match named {
                true => self.when(is_const, |r| r.constant(d)),
                false => self.constant(d),
            }
        }
        if !named {
            return;
        }
        let natural = |r: &mut Self| {
            // also where a stride has bound the symbol, which may be negative
            let ok = r.b.icmp_imm(IntCC::SGe, got, 0);
            let stride = r.b.unary(UnaryOp::Not, size);
            let ok = r.or(ok, stride);
            r.require_dim(ok, &[Part::Text("a size of at least 0"), GOT, GOT_NUMBER]);
        };
        let computed = self.b.unary(UnaryOp::Not, is_const);
        match self.has(Aspect::Const) {
            true => self.when(computed, natural),
            false => natural(self),
        }
        if self.has(Aspect::Symbol) {
            let is_symbol = self.is(kind, Entry::Symbol as i64);
            match self.has(Aspect::Const) || self.has(Aspect::Expr) {
                true => self.when(is_symbol, |r| r.symbol(d)),
                false => self.symbol(d),
            }
        }
        if self.has(Aspect::Expr) {
            let is_expr = self.is(kind, Entry::Expr as i64);
            let counts = self.b.unary(UnaryOp::Not, excused);
            let is_expr = self.and(is_expr, counts);
            self.when(is_expr, |r| r.expr(d));
        }
    }

    /// What the good path expects in place of the dimension, which only strides may be other than.
    fn accept_dim(&mut self, value: Value) {
        if self.has(Aspect::Strided) {
            self.set_field(Field::Accepted, value);
        }
    }

    /// Copies a place. Where there are no containers it has no steps.
    pub(super) fn copy_place(&mut self, from: Value, to: Value) {
        match self.routines.copy_place {
            Some(copy_place) => _ = self.b.call(copy_place, &[from, to]),
            None => copy_words(self, from, to),
        }
    }

    fn require_dim(&mut self, ok: Value, expected: &[Part<'_>]) {
        self.require_of(ok, VALUE_ERROR, &PLACE, expected);
    }

    fn constant(&mut self, d: Dim) {
        let (low, high) = (self.word(d.entry, entry::VALUE), self.word(d.entry, entry::HIGH_OR_NAME));
        let value = self.halves(low, high);
        self.accept_dim(value);
        self.set_field(Field::Expected, value);
        let ok = self.b.icmp(IntCC::Eq, d.got, value);
        let ok = self.or(ok, d.excused);
        self.require_dim(ok, &[EXPECTED_NUMBER, GOT, GOT_NUMBER]);
    }

    fn symbol(&mut self, d: Dim) {
        let number = self.word(d.entry, entry::VALUE);
        let note = self.note(number);
        let bound = self.is_bound(note);
        self.when_else(
            bound,
            |r| {
                let value = r.expect_symbol(d.entry, note);
                r.accept_dim(value);
                let ok = r.b.icmp(IntCC::Eq, d.got, value);
                let ok = r.or(ok, d.excused);
                r.require_dim(ok, &[&expected_symbol()[..], &[GOT, GOT_NUMBER]].concat());
            },
            |r| r.bind_note(note, d.got),
        );
    }

    /// The value of a symbol that has one, which messages then tell as [`expected_symbol`].
    pub(super) fn expect_symbol(&mut self, entry: Value, note: Value) -> Value {
        let value = self.b.load(Type::I64, note, note::VALUE, MemFlags::ALIGNED);
        self.set_field(Field::Expected, value);
        let name = self.table_text(entry, entry::HIGH_OR_NAME);
        self.set_field(Field::Symbol, name);
        let origin = self.b.ptr_add_imm(note, i64::from(note::PLACE));
        self.set_field(Field::Origin, origin);
        value
    }

    /// Gives a symbol its value, from the present place.
    pub(super) fn bind_note(&mut self, note: Value, value: Value) {
        self.b.store(value, note, note::VALUE, MemFlags::ALIGNED);
        let here = self.here();
        let to = self.b.ptr_add_imm(note, i64::from(note::PLACE));
        self.copy_place(here, to);
    }

    /// Looks at an expression: how many of its symbols have no value, and the last of these.
    pub(super) fn unknown(&mut self, expr: Value) -> (Value, Value) {
        let (count, last) = (Var::new(&mut self.b, Type::I64), Var::new(&mut self.b, Type::Ptr));
        let zero = self.b.i64(0);
        self.set(count, zero);
        let first = self.b.ptr_add_imm(expr, i64::from(4 * expr::SIZE));
        self.set(last, first);
        let terms = self.word(expr, expr::TERMS);
        self.for_up(terms, |r, index| {
            let term = r.nth(first, index, 4 * term::SIZE);
            let symbol = r.word(term, term::SYMBOL);
            let note = r.note(symbol);
            let bound = r.is_bound(note);
            let unbound = r.b.unary(UnaryOp::Not, bound);
            r.when(unbound, |r| {
                r.advance_imm(count, 1);
                r.set(last, term);
            });
        });
        (self.get(count), self.get(last))
    }

    /// The value of the code at the offset in a word; whether it has one is in [`Field::HasValue`].
    pub(super) fn value_of(&mut self, base: Value, word: i32, target: Value) -> (Value, Value) {
        let code = self.table_text(base, word);
        let value = self.routines.eval.and_then(|eval| self.b.call(eval, &[self.state, code, target]));
        let status = self.field(Field::HasValue);
        let has_value = self.is(status, HAS_VALUE);
        (value.unwrap_or(target), has_value)
    }

    fn expr(&mut self, d: Dim) {
        let expr = self.table_text(d.entry, entry::VALUE);
        self.set_field(Field::Expr, expr);
        let text = self.table_text(expr, expr::TEXT);
        self.set_field(Field::Text, text);
        let (unknown, last) = self.unknown(expr);
        let none = self.is(unknown, 0);
        let one = self.is(unknown, 1);
        let solve = self.word(last, term::SOLVE);
        let solvable = self.is_not(solve, 0);
        let solvable = self.and(one, solvable);
        self.when(none, |r| r.compare(d, expr));
        self.when(solvable, |r| r.solve(d, expr, last));
        let decided = self.or(none, solvable);
        let undecided = self.b.unary(UnaryOp::Not, decided);
        self.when(undecided, |r| r.wait(d));
    }

    fn compare(&mut self, d: Dim, expr: Value) {
        let text = of(Tag::String, Field::Text);
        let bindings = of(Tag::Bindings, Field::Expr);
        let (value, has_value) = self.value_of(expr, expr::CODE, d.got);
        let in_64_bits = [text, Part::Text(" in 64 bits ("), bindings, Part::Text("), got "), GOT_NUMBER];
        self.require_dim(has_value, &in_64_bits);
        self.accept_dim(value);
        self.set_field(Field::Expected, value);
        let same = self.b.icmp(IntCC::Eq, value, d.got);
        let parts =
            [EXPECTED_NUMBER, Part::Text(" ("), text, Part::Text(", "), bindings, Part::Text("), got "), GOT_NUMBER];
        self.require_dim(same, &parts);
    }

    fn solve(&mut self, d: Dim, expr: Value, term: Value) {
        let name = self.table_text(term, term::NAME);
        self.set_field(Field::Symbol, name);
        let symbol = self.word(term, term::SYMBOL);
        let note = self.note(symbol);
        let (candidate, solved) = self.value_of(term, term::SOLVE, d.got);
        // a factor of 0 says nothing of the other
        let status = self.field(Field::HasValue);
        let open = self.is(status, ZERO_DIVISOR);
        self.when_else(open, |r| r.wait(d), |r| r.solved(d, expr, note, candidate, solved));
    }

    /// The symbol's value, if the expression then has what came.
    fn solved(&mut self, d: Dim, expr: Value, note: Value, candidate: Value, solved: Value) {
        self.b.store(candidate, note, note::VALUE, MemFlags::ALIGNED);
        let (value, has_value) = self.value_of(expr, expr::CODE, d.got);
        let same = self.b.icmp(IntCC::Eq, value, d.got);
        let natural = self.b.icmp_imm(IntCC::SGe, candidate, 0);
        let stride = self.b.unary(UnaryOp::Not, d.size);
        let natural = self.or(natural, stride);
        let ok = self.and(solved, has_value);
        let ok = self.and(ok, same);
        let ok = self.and(ok, natural);
        let (text, name) = (of(Tag::String, Field::Text), of(Tag::String, Field::Symbol));
        let terms = self.word(expr, expr::TERMS);
        let alone = self.is(terms, 1);
        let with_others = self.or(ok, alone);
        let others = [Part::Text(" ("), of(Tag::Bindings, Field::Expr), Part::Text("), got "), GOT_NUMBER];
        let for_some = [text, Part::Text(" for some "), name];
        self.require_dim(with_others, &[&for_some[..], &others].concat());
        self.require_dim(ok, &[&for_some[..], &[GOT, GOT_NUMBER]].concat());
        self.bind_note(note, candidate);
    }

    /// Puts the dimension off, or says that it has no value.
    fn wait(&mut self, d: Dim) {
        let pass = self.field(Field::Pass);
        let last = self.is(pass, Pass::Last as i64);
        let here = self.here();
        let never = if self.has(Aspect::Elements) {
            let depth = self.b.load(Type::I64, here, place::DEPTH, MemFlags::ALIGNED);
            let inside = self.is_not(depth, 0);
            self.or(last, inside)
        } else {
            last
        };
        let may_wait = self.b.unary(UnaryOp::Not, never);
        let text = of(Tag::String, Field::Text);
        // "of which n has", "of which n and k have"
        let expr = self.field_ptr(Field::Expr);
        let (unknown, _) = self.unknown(expr);
        let one = self.is(unknown, 1);
        let several = self.b.unary(UnaryOp::Not, one);
        let names = of(Tag::Unknown, Field::Expr);
        let no_value = |verb| [text, Part::Text(", of which "), names, Part::Text(verb), GOT, GOT_NUMBER];
        let ok = self.or(may_wait, several);
        self.require_dim(ok, &no_value(" has no value"));
        self.require_dim(may_wait, &no_value(" have no value"));
        let first = self.is(pass, Pass::First as i64);
        self.when(first, |r| {
            let (all, count, size) =
                (r.field_ptr(Field::Waiting), r.field(Field::WaitingCount), r.field(Field::WaitingSize));
            let to = r.nth_of(all, count, size);
            r.b.store(d.entry, to, waiting::ENTRY, MemFlags::ALIGNED);
            r.b.store(d.got, to, waiting::GOT, MemFlags::ALIGNED);
            let arg = r.field(Field::Arg);
            r.b.store(arg, to, waiting::ARG, MemFlags::ALIGNED);
            let size = r.b.convert(ConvertOp::ZExt, Type::I64, d.size);
            r.b.store(size, to, waiting::IS_SIZE, MemFlags::ALIGNED);
            let place = r.b.ptr_add_imm(to, i64::from(waiting::PLACE));
            r.copy_place(here, place);
            let one = r.b.i64(1);
            let count = r.b.binary(BinaryOp::Add, count, one);
            r.set_field(Field::WaitingCount, count);
        });
        self.set_number(Field::HasValue, NO_VALUE);
    }
}

/// `void copy_place(const Place* from, Place* to)`. A key that is a text may not outlive the check, so that it is told by `[...]`.
pub(super) fn copy_place(r: &mut Binder<'_, '_>) {
    let (from, to) = (r.b.param(0), r.b.param(1));
    copy_words(r, from, to);
    if !r.has(Aspect::Elements) {
        return r.b.ret(None);
    }
    let depth = r.b.load(Type::I64, from, place::DEPTH, MemFlags::ALIGNED);
    r.for_up(depth, |r, index| {
        let (from, to) = (r.nth(from, index, step::SIZE), r.nth(to, index, step::SIZE));
        for word in [step::NAME, step::KIND, step::VALUE] {
            let word = place::STEPS + word;
            let value = r.b.load(Type::I64, from, word, MemFlags::ALIGNED);
            r.b.store(value, to, word, MemFlags::ALIGNED);
        }
        let kind = r.b.load(Type::I64, from, place::STEPS + step::KIND, MemFlags::ALIGNED);
        let is_text = r.is(kind, StepKind::Text as i64);
        r.when(is_text, |r| {
            let other = r.b.i64(StepKind::Other as i64);
            r.b.store(other, to, place::STEPS + step::KIND, MemFlags::ALIGNED);
        });
    });
    r.b.ret(None);
}

/// Copies all of a place but the steps; their number only where there are some.
fn copy_words(r: &mut Binder<'_, '_>, from: Value, to: Value) {
    let words = [place::NAME, place::PART, place::DIM, place::DEPTH];
    let words = if r.has(Aspect::Elements) { &words[..] } else { &words[..3] };
    for &offset in words {
        let word = r.b.load(Type::I64, from, offset, MemFlags::ALIGNED);
        r.b.store(word, to, offset, MemFlags::ALIGNED);
    }
}
