//! `dim`: a size or stride against its entry. Contract 4 and 5.

use super::emit::{Emit, Var};
use super::eval::{HAS_VALUE, NO_VALUE, ZERO_DIVISOR};
use super::routine::{Binder, EXPECTED_NUMBER, GOT, GOT_NUMBER, VALUE_ERROR, of};
use super::state::State;
use crate::ir::{BinaryOp, ConvertOp, IntCC, MemFlags, Type, UnaryOp, Value};
use crate::lower::protocol::Field;
use crate::lower::protocol::state::Pass;
use crate::lower::protocol::{Aspect, Entry, StepKind, entry, expr, note, place, step, term, waiting};
use crate::lower::protocol::{Part, Tag};

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
    let mut has = |flag| {
        let flag = r.b.i64(flag);
        let set = r.and(flags, flag);
        r.is_not(set, 0)
    };
    let (size, excused) = (has(IS_SIZE), has(EXCUSED));
    r.look_at_dim(Dim { entry, got, size: Some(size), excused: Some(excused) });
    r.succeed();
}

/// A dimension that is looked at.
#[derive(Clone, Copy)]
struct Dim {
    entry: Value,
    got: Value,
    /// Whether it is a size; surely where there is nothing.
    size: Option<Value>,
    /// Whether it need not be what it should be; surely not where there is nothing.
    excused: Option<Value>,
}

impl Binder<'_, '_> {
    /// Looks at a size.
    pub(super) fn size(&mut self, entry: Value, got: Value) {
        match self.routines.dim {
            Some(_) => {
                let flags = self.b.i64(IS_SIZE);
                self.dim(entry, got, flags);
            }
            None => self.look_at_dim(Dim { entry, got, size: None, excused: None }),
        }
    }

    /// Looks at a stride, which may be excused.
    pub(super) fn stride(&mut self, entry: Value, got: Value, excused: Value) {
        match self.routines.dim {
            Some(_) => {
                let (none, some) = (self.b.i64(0), self.b.i64(EXCUSED));
                let flags = self.b.select(excused, some, none);
                self.dim(entry, got, flags);
            }
            None => {
                let size = Some(self.b.bconst(false));
                self.look_at_dim(Dim { entry, got, size, excused: Some(excused) });
            }
        }
    }

    /// Calls the routine, which there is for programs with more than one kind of dimensions.
    pub(super) fn dim(&mut self, entry: Value, got: Value, flags: Value) {
        if let Some(dim) = self.routines.dim {
            self.call_or_fail(dim, &[self.state, entry, got, flags]);
        }
    }

    fn look_at_dim(&mut self, d: Dim) {
        let Dim { entry, got, .. } = d;
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
            let ok = r.natural(d, got);
            r.require_dim(ok, &[Part::Text("a size of at least 0"), GOT, GOT_NUMBER], |r| r.tell_got(d));
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
            let is_expr = match d.excused {
                Some(excused) => {
                    let counts = self.b.unary(UnaryOp::Not, excused);
                    self.and(is_expr, counts)
                }
                None => is_expr,
            };
            self.when(is_expr, |r| r.expr(d));
        }
    }

    /// Whether a number will do for the dimension: that of a size is not negative.
    fn natural(&mut self, d: Dim, number: Value) -> Value {
        let natural = self.b.icmp_imm(IntCC::SGe, number, 0);
        let Some(size) = d.size else { return natural };
        let stride = self.b.unary(UnaryOp::Not, size);
        self.or(natural, stride)
    }

    /// Whether what came is what should be, or need not be.
    fn is_expected(&mut self, d: Dim, expected: Value) -> Value {
        let same = self.b.icmp(IntCC::Eq, d.got, expected);
        d.excused.map_or(same, |excused| self.or(same, excused))
    }

    fn tell_got(&mut self, d: Dim) {
        self.set_field(Field::Got, d.got);
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

    fn require_dim(&mut self, ok: Value, expected: &[Part<'_>], tell: impl FnOnce(&mut Self)) {
        self.require_of_telling(ok, VALUE_ERROR, &PLACE, expected, tell);
    }

    fn constant(&mut self, d: Dim) {
        let (low, high) = (self.word(d.entry, entry::VALUE), self.word(d.entry, entry::HIGH_OR_NAME));
        let value = self.halves(low, high);
        self.accept_dim(value);
        let ok = self.is_expected(d, value);
        self.require_dim(ok, &[EXPECTED_NUMBER, GOT, GOT_NUMBER], |r| {
            r.tell_got(d);
            r.set_field(Field::Expected, value);
        });
    }

    fn symbol(&mut self, d: Dim) {
        let number = self.word(d.entry, entry::VALUE);
        let note = self.note(number);
        let bound = self.is_bound(note);
        self.when_else(
            bound,
            |r| {
                let value = r.b.load(Type::I64, note, note::VALUE, MemFlags::ALIGNED);
                r.accept_dim(value);
                let ok = r.is_expected(d, value);
                r.require_dim(ok, &[&expected_symbol()[..], &[GOT, GOT_NUMBER]].concat(), |r| {
                    r.tell_got(d);
                    r.tell_symbol(d.entry, note, value);
                });
            },
            |r| r.bind_note(note, d.got),
        );
    }

    /// Sets what a message tells as [`expected_symbol`]: a symbol that has a value.
    pub(super) fn tell_symbol(&mut self, entry: Value, note: Value, value: Value) {
        self.set_field(Field::Expected, value);
        let name = self.table_text(entry, entry::HIGH_OR_NAME);
        self.set_field(Field::Symbol, name);
        let origin = self.b.ptr_add_imm(note, i64::from(note::PLACE));
        self.set_field(Field::Origin, origin);
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
        self.tell_got(d);
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
        self.require_dim(has_value, &in_64_bits, |_| {});
        self.accept_dim(value);
        let same = self.b.icmp(IntCC::Eq, value, d.got);
        let parts =
            [EXPECTED_NUMBER, Part::Text(" ("), text, Part::Text(", "), bindings, Part::Text("), got "), GOT_NUMBER];
        self.require_dim(same, &parts, |r| r.set_field(Field::Expected, value));
    }

    fn solve(&mut self, d: Dim, expr: Value, term: Value) {
        let name = self.table_text(term, term::NAME);
        self.set_field(Field::Symbol, name);
        let symbol = self.word(term, term::SYMBOL);
        let note = self.note(symbol);
        let (candidate, solved) = self.value_of(term, term::SOLVE, d.got);
        // a factor of 0 says nothing of the other
        let status = self.field(Field::HasValue);
        let open = self.b.icmp_imm(IntCC::UGe, status, ZERO_DIVISOR);
        self.when_else(open, |r| r.wait(d), |r| r.solved(d, expr, note, candidate, solved));
    }

    /// The symbol's value, if the expression then has what came.
    fn solved(&mut self, d: Dim, expr: Value, note: Value, candidate: Value, solved: Value) {
        self.b.store(candidate, note, note::VALUE, MemFlags::ALIGNED);
        let (value, has_value) = self.value_of(expr, expr::CODE, d.got);
        let same = self.b.icmp(IntCC::Eq, value, d.got);
        let natural = self.natural(d, candidate);
        let ok = self.and(solved, has_value);
        let ok = self.and(ok, same);
        let ok = self.and(ok, natural);
        let (text, name) = (of(Tag::String, Field::Text), of(Tag::String, Field::Symbol));
        let terms = self.word(expr, expr::TERMS);
        let alone = self.is(terms, 1);
        let with_others = self.or(ok, alone);
        let others = [Part::Text(" ("), of(Tag::Bindings, Field::Expr), Part::Text("), got "), GOT_NUMBER];
        let for_some = [text, Part::Text(" for some "), name];
        self.require_dim(with_others, &[&for_some[..], &others].concat(), |_| {});
        self.require_dim(ok, &[&for_some[..], &[GOT, GOT_NUMBER]].concat(), |_| {});
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
        self.require_dim(ok, &no_value(" has no value"), |_| {});
        self.require_dim(may_wait, &no_value(" have no value"), |_| {});
        let first = self.is(pass, Pass::First as i64);
        self.when(first, |r| {
            let (all, count, size) =
                (r.field_ptr(Field::Waiting), r.field(Field::WaitingCount), r.field(Field::WaitingSize));
            let to = r.nth_of(all, count, size);
            r.b.store(d.entry, to, waiting::ENTRY, MemFlags::ALIGNED);
            r.b.store(d.got, to, waiting::GOT, MemFlags::ALIGNED);
            let arg = r.field(Field::Arg);
            r.b.store(arg, to, waiting::ARG, MemFlags::ALIGNED);
            let size = match d.size {
                Some(size) => r.b.convert(ConvertOp::ZExt, Type::I64, size),
                None => r.b.i64(IS_SIZE),
            };
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
