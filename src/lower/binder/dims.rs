//! `dim`: a size or stride against its descriptor (C5.9 to C5.15, C5.17, C10.9 to C10.15, C10.18).

use super::eval::{HAS_VALUE, NO_VALUE, ZERO_DIVISOR};
use super::helper::{Binder, EXPECTED_NUMBER, GOT, GOT_NUMBER, VALUE_ERROR, piece};
use super::state::BinderState;
use super::structured::{StructuredCode, Var};
use crate::ir::{BinaryOp, ConvertOp, IntCC, MemFlags, Type, UnaryOp, Value};
use crate::lower::protocol::state::{Pass, STEP_SIZE, STEPS};
use crate::lower::protocol::{
    Binding, Capability, ConstantDim, Deferred, DescriptorField, DimDescriptor, DimKind, Directive, ExprDescriptor,
    ExprDim, Field, Path, Piece, Step, StepKind, SymbolDim, TermDescriptor, field, offset,
};

/// A flag of a dimension: the dimension is a size, and so not negative.
pub(super) const IS_SIZE: i64 = 1;
/// A flag of a dimension: the dimension need not have the expected value (C10.18).
pub(super) const EXCUSED: i64 = 2;

/// `.shape[0]`
const DIM_PATH: [Piece<'static>; 1] = [Piece::Value(Directive::DimPath, Field::Path as u32)];

/// `10 (n, from x.shape[0])`
pub(super) fn expected_symbol() -> [Piece<'static>; 6] {
    [
        EXPECTED_NUMBER,
        Piece::Text(" ("),
        piece(Directive::String, Field::Symbol),
        Piece::Text(", from "),
        piece(Directive::DimPath, Field::Origin),
        Piece::Text(")"),
    ]
}

/// `int32_t dim(State*, const DimDescriptor* dim, int64_t got, int64_t flags)`; writes what the fast path expects to [`Field::Accepted`].
pub(super) fn dim(r: &mut Binder<'_, '_>) {
    let (dim, got, flags) = (r.b.param(1), r.b.param(2), r.b.param(3));
    let mut has = |flag| {
        let flag = r.b.i64(flag);
        let set = r.and(flags, flag);
        r.is_not(set, 0)
    };
    let (size, excused) = (has(IS_SIZE), has(EXCUSED));
    r.look_at_dim(Dim { dim, got, size: Some(size), excused: Some(excused) });
    r.succeed();
}

/// A dimension that is looked at.
#[derive(Clone, Copy)]
struct Dim {
    dim: Value,
    got: Value,
    /// Whether the dimension is a size; `None` for a dimension that always is.
    size: Option<Value>,
    /// Whether the dimension need not have the expected value; `None` for a dimension that always has to.
    excused: Option<Value>,
}

impl Binder<'_, '_> {
    /// Looks at a size.
    pub(super) fn size(&mut self, dim: Value, got: Value) {
        match self.helpers.dim {
            Some(_) => {
                let flags = self.b.i64(IS_SIZE);
                self.dim(dim, got, flags);
            }
            None => self.look_at_dim(Dim { dim, got, size: None, excused: None }),
        }
    }

    /// Looks at a stride, which may be excused.
    pub(super) fn stride(&mut self, dim: Value, got: Value, excused: Value) {
        match self.helpers.dim {
            Some(_) => {
                let (none, some) = (self.b.i64(0), self.b.i64(EXCUSED));
                let flags = self.b.select(excused, some, none);
                self.dim(dim, got, flags);
            }
            None => {
                let size = Some(self.b.bconst(false));
                self.look_at_dim(Dim { dim, got, size, excused: Some(excused) });
            }
        }
    }

    /// Calls the function, which is there for descriptors that have dimensions of more than one kind.
    pub(super) fn dim(&mut self, dim: Value, got: Value, flags: Value) {
        if let Some(helper) = self.helpers.dim {
            self.call_or_fail(helper, &[self.state, dim, got, flags]);
        }
    }

    fn look_at_dim(&mut self, d: Dim) {
        let Dim { dim, got, .. } = d;
        self.accept_dim(got);
        let kind = self.read(dim, field!(DimDescriptor, kind));
        let is_const = self.is(kind, DimKind::Const as i64);
        let computed_dims = self.has(Capability::Symbol) || self.has(Capability::Expr);
        if self.has(Capability::Const) {
            match computed_dims {
                true => self.when(is_const, |r| r.constant(d)),
                false => self.constant(d),
            }
        }
        if !computed_dims {
            return;
        }
        let natural = |r: &mut Self| {
            // also where a stride has bound the symbol, which may be negative
            let ok = r.natural(d, got);
            r.require_dim(ok, &[Piece::Text("a size of at least 0"), GOT, GOT_NUMBER], |r| r.tell_got(d));
        };
        let computed = self.b.unary(UnaryOp::Not, is_const);
        match self.has(Capability::Const) {
            true => self.when(computed, natural),
            false => natural(self),
        }
        if self.has(Capability::Symbol) {
            let is_symbol = self.is(kind, DimKind::Symbol as i64);
            match self.has(Capability::Const) || self.has(Capability::Expr) {
                true => self.when(is_symbol, |r| r.symbol(d)),
                false => self.symbol(d),
            }
        }
        if self.has(Capability::Expr) {
            let is_expr = self.is(kind, DimKind::Expr as i64);
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

    /// Whether the dimension may have a number: a size is not negative.
    fn natural(&mut self, d: Dim, number: Value) -> Value {
        let natural = self.b.icmp_imm(IntCC::SGe, number, 0);
        let Some(size) = d.size else { return natural };
        let stride = self.b.unary(UnaryOp::Not, size);
        self.or(natural, stride)
    }

    /// Whether the dimension has the expected value, or need not have it.
    fn is_expected(&mut self, d: Dim, expected: Value) -> Value {
        let same = self.b.icmp(IntCC::Eq, d.got, expected);
        d.excused.map_or(same, |excused| self.or(same, excused))
    }

    fn tell_got(&mut self, d: Dim) {
        self.set_field(Field::Got, d.got);
    }

    /// Sets the number that the fast path expects in place of the dimension. Only a stride may differ from it.
    fn accept_dim(&mut self, value: Value) {
        if self.has(Capability::Strided) {
            self.set_field(Field::Accepted, value);
        }
    }

    /// Copies a path. Where there are no containers it has no steps.
    pub(super) fn copy_path(&mut self, from: Value, to: Value) {
        match self.helpers.copy_path {
            Some(copy_path) => _ = self.b.call(copy_path, &[from, to]),
            None => copy_words(self, from, to),
        }
    }

    fn require_dim(&mut self, ok: Value, expected: &[Piece<'_>], tell: impl FnOnce(&mut Self)) {
        self.require_of_telling(ok, VALUE_ERROR, &DIM_PATH, expected, tell);
    }

    fn constant(&mut self, d: Dim) {
        let (low, high) =
            (self.read(d.dim, field!(ConstantDim, value.low)), self.read(d.dim, field!(ConstantDim, value.high)));
        let value = self.halves(low, high);
        self.accept_dim(value);
        let ok = self.is_expected(d, value);
        self.require_dim(ok, &[EXPECTED_NUMBER, GOT, GOT_NUMBER], |r| {
            r.tell_got(d);
            r.set_field(Field::Expected, value);
        });
    }

    fn symbol(&mut self, d: Dim) {
        let number = self.read(d.dim, field!(SymbolDim, symbol));
        let binding = self.binding(number);
        let bound = self.is_bound(binding);
        self.when_else(
            bound,
            |r| {
                let value = r.b.load(Type::I64, binding, offset!(Binding, value), MemFlags::ALIGNED);
                r.accept_dim(value);
                let ok = r.is_expected(d, value);
                r.require_dim(ok, &[&expected_symbol()[..], &[GOT, GOT_NUMBER]].concat(), |r| {
                    r.tell_got(d);
                    r.tell_symbol(d.dim, binding, value);
                });
            },
            |r| r.bind(binding, d.got),
        );
    }

    /// Sets the fields that [`expected_symbol`] shows, for a symbol that has a value.
    pub(super) fn tell_symbol(&mut self, dim: Value, binding: Value, value: Value) {
        self.set_field(Field::Expected, value);
        let name = self.pool_text(dim, field!(SymbolDim, name));
        self.set_field(Field::Symbol, name);
        let origin = self.b.ptr_add_imm(binding, i64::from(offset!(Binding, path)));
        self.set_field(Field::Origin, origin);
    }

    /// Gives a symbol its value, from the present path.
    pub(super) fn bind(&mut self, binding: Value, value: Value) {
        self.b.store(value, binding, offset!(Binding, value), MemFlags::ALIGNED);
        let here = self.path();
        let to = self.b.ptr_add_imm(binding, i64::from(offset!(Binding, path)));
        self.copy_path(here, to);
    }

    /// How many symbols of an expression have no value, and the last of these.
    pub(super) fn unknown(&mut self, expr: Value) -> (Value, Value) {
        let (count, last) = (Var::new(&mut self.b, Type::I64), Var::new(&mut self.b, Type::Ptr));
        let zero = self.b.i64(0);
        self.set(count, zero);
        let first = self.behind::<ExprDescriptor>(expr);
        self.set(last, first);
        let terms = self.read(expr, field!(ExprDescriptor, terms));
        self.for_up(terms, |r, index| {
            let term = r.nth_descriptor::<TermDescriptor>(first, index);
            let symbol = r.read(term, field!(TermDescriptor, symbol));
            let binding = r.binding(symbol);
            let bound = r.is_bound(binding);
            let unbound = r.b.unary(UnaryOp::Not, bound);
            r.when(unbound, |r| {
                r.advance_imm(count, 1);
                r.set(last, term);
            });
        });
        (self.get(count), self.get(last))
    }

    /// The value of the code at an offset that a descriptor tells; [`Field::HasValue`] says whether the code has a value.
    pub(super) fn value_of(&mut self, descriptor: Value, code: DescriptorField, target: Value) -> (Value, Value) {
        let code = self.pool_text(descriptor, code);
        let value = self.helpers.eval.and_then(|eval| self.b.call(eval, &[self.state, code, target]));
        let status = self.field(Field::HasValue);
        let has_value = self.is(status, HAS_VALUE);
        (value.unwrap_or(target), has_value)
    }

    fn expr(&mut self, d: Dim) {
        let expr = self.pool_text(d.dim, field!(ExprDim, expr));
        self.set_field(Field::Expr, expr);
        self.tell_got(d);
        let text = self.pool_text(expr, field!(ExprDescriptor, text));
        self.set_field(Field::Text, text);
        let (unknown, last) = self.unknown(expr);
        let none = self.is(unknown, 0);
        let one = self.is(unknown, 1);
        let solve = self.read(last, field!(TermDescriptor, solve));
        let solvable = self.is_not(solve, 0);
        let solvable = self.and(one, solvable);
        self.when(none, |r| r.compare(d, expr));
        self.when(solvable, |r| r.solve(d, expr, last));
        let decided = self.or(none, solvable);
        let undecided = self.b.unary(UnaryOp::Not, decided);
        self.when(undecided, |r| r.defer(d));
    }

    fn compare(&mut self, d: Dim, expr: Value) {
        let text = piece(Directive::String, Field::Text);
        let bindings = piece(Directive::Bindings, Field::Expr);
        let (value, has_value) = self.value_of(expr, field!(ExprDescriptor, code), d.got);
        let in_64_bits = [text, Piece::Text(" in 64 bits ("), bindings, Piece::Text("), got "), GOT_NUMBER];
        self.require_dim(has_value, &in_64_bits, |_| {});
        self.accept_dim(value);
        let same = self.b.icmp(IntCC::Eq, value, d.got);
        let pieces =
            [EXPECTED_NUMBER, Piece::Text(" ("), text, Piece::Text(", "), bindings, Piece::Text("), got "), GOT_NUMBER];
        self.require_dim(same, &pieces, |r| r.set_field(Field::Expected, value));
    }

    fn solve(&mut self, d: Dim, expr: Value, term: Value) {
        let name = self.pool_text(term, field!(TermDescriptor, name));
        self.set_field(Field::Symbol, name);
        let symbol = self.read(term, field!(TermDescriptor, symbol));
        let binding = self.binding(symbol);
        let (candidate, solved) = self.value_of(term, field!(TermDescriptor, solve), d.got);
        // a factor of 0 says nothing about the other (C10.13)
        let status = self.field(Field::HasValue);
        let open = self.b.icmp_imm(IntCC::UGe, status, ZERO_DIVISOR);
        self.when_else(open, |r| r.defer(d), |r| r.solved(d, expr, binding, candidate, solved));
    }

    /// Binds the symbol to a value, if the expression then has the value that came.
    fn solved(&mut self, d: Dim, expr: Value, binding: Value, candidate: Value, solved: Value) {
        self.b.store(candidate, binding, offset!(Binding, value), MemFlags::ALIGNED);
        let (value, has_value) = self.value_of(expr, field!(ExprDescriptor, code), d.got);
        let same = self.b.icmp(IntCC::Eq, value, d.got);
        let natural = self.natural(d, candidate);
        let ok = self.and(solved, has_value);
        let ok = self.and(ok, same);
        let ok = self.and(ok, natural);
        let (text, name) = (piece(Directive::String, Field::Text), piece(Directive::String, Field::Symbol));
        let terms = self.read(expr, field!(ExprDescriptor, terms));
        let alone = self.is(terms, 1);
        let with_others = self.or(ok, alone);
        let others = [Piece::Text(" ("), piece(Directive::Bindings, Field::Expr), Piece::Text("), got "), GOT_NUMBER];
        let for_some = [text, Piece::Text(" for some "), name];
        self.require_dim(with_others, &[&for_some[..], &others].concat(), |_| {});
        self.require_dim(ok, &[&for_some[..], &[GOT, GOT_NUMBER]].concat(), |_| {});
        self.bind(binding, candidate);
    }

    /// Defers the dimension, or raises that it has no value (C10.14, C10.15).
    fn defer(&mut self, d: Dim) {
        let pass = self.field(Field::Pass);
        let last = self.is(pass, Pass::Last as i64);
        let here = self.path();
        let never = if self.has(Capability::Elements) {
            let depth = self.b.load(Type::I64, here, offset!(Path, depth), MemFlags::ALIGNED);
            let inside = self.is_not(depth, 0);
            self.or(last, inside)
        } else {
            last
        };
        let may_defer = self.b.unary(UnaryOp::Not, never);
        let text = piece(Directive::String, Field::Text);
        // "of which n has", "of which n and k have"
        let expr = self.field_ptr(Field::Expr);
        let (unknown, _) = self.unknown(expr);
        let one = self.is(unknown, 1);
        let several = self.b.unary(UnaryOp::Not, one);
        let names = piece(Directive::Unknown, Field::Expr);
        let no_value = |verb| [text, Piece::Text(", of which "), names, Piece::Text(verb), GOT, GOT_NUMBER];
        let ok = self.or(may_defer, several);
        self.require_dim(ok, &no_value(" has no value"), |_| {});
        self.require_dim(may_defer, &no_value(" have no value"), |_| {});
        let first = self.is(pass, Pass::First as i64);
        self.when(first, |r| {
            let (all, count, size) =
                (r.field_ptr(Field::Deferred), r.field(Field::DeferredCount), r.field(Field::DeferredSize));
            let to = r.nth_of(all, count, size);
            r.b.store(d.dim, to, offset!(Deferred, dim), MemFlags::ALIGNED);
            r.b.store(d.got, to, offset!(Deferred, got), MemFlags::ALIGNED);
            let arg = r.field(Field::Arg);
            r.b.store(arg, to, offset!(Deferred, arg), MemFlags::ALIGNED);
            let size = match d.size {
                Some(size) => r.b.convert(ConvertOp::ZExt, Type::I64, size),
                None => r.b.i64(IS_SIZE),
            };
            r.b.store(size, to, offset!(Deferred, is_size), MemFlags::ALIGNED);
            let to = r.b.ptr_add_imm(to, i64::from(offset!(Deferred, path)));
            r.copy_path(here, to);
            let one = r.b.i64(1);
            let count = r.b.binary(BinaryOp::Add, count, one);
            r.set_field(Field::DeferredCount, count);
        });
        self.set_number(Field::HasValue, NO_VALUE);
    }
}

/// `void copy_path(const Path* from, Path* to)`. A key that is a text may not outlive the check: the copy shows
/// it as `[...]` (C7.7).
pub(super) fn copy_path(r: &mut Binder<'_, '_>) {
    let (from, to) = (r.b.param(0), r.b.param(1));
    copy_words(r, from, to);
    if !r.has(Capability::Elements) {
        return r.b.ret(None);
    }
    let depth = r.b.load(Type::I64, from, offset!(Path, depth), MemFlags::ALIGNED);
    r.for_up(depth, |r, index| {
        let (from, to) = (r.nth(from, index, STEP_SIZE), r.nth(to, index, STEP_SIZE));
        for word in [offset!(Step, name), offset!(Step, kind), offset!(Step, value)] {
            let word = STEPS + word;
            let value = r.b.load(Type::I64, from, word, MemFlags::ALIGNED);
            r.b.store(value, to, word, MemFlags::ALIGNED);
        }
        let kind = r.b.load(Type::I64, from, STEPS + offset!(Step, kind), MemFlags::ALIGNED);
        let is_text = r.is(kind, StepKind::Text as i64);
        r.when(is_text, |r| {
            let other = r.b.i64(StepKind::Other as i64);
            r.b.store(other, to, STEPS + offset!(Step, kind), MemFlags::ALIGNED);
        });
    });
    r.b.ret(None);
}

/// Copies all of a path but the steps; their number only where there are some.
fn copy_words(r: &mut Binder<'_, '_>, from: Value, to: Value) {
    let words = [offset!(Path, name), offset!(Path, member), offset!(Path, dim), offset!(Path, depth)];
    let words = if r.has(Capability::Elements) { &words[..] } else { &words[..3] };
    for &offset in words {
        let word = r.b.load(Type::I64, from, offset, MemFlags::ALIGNED);
        r.b.store(word, to, offset, MemFlags::ALIGNED);
    }
}
