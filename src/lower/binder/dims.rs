//! `dim`: checks a size or stride against its descriptor (C5.9 to C5.15, C5.17, C10.9 to C10.15, C10.18).

use super::eval::{HAS_VALUE, NO_VALUE, ZERO_DIVISOR};
use super::helper::{Binder, EXPECTED_NUMBER, GOT, GOT_NUMBER, VALUE_ERROR, piece};
use super::state::BinderState;
use super::structured::{Behind, halves};
use crate::ir::{Type, Val};
use crate::lower::protocol::state::{Pass, STEP_SIZE, STEPS};
use crate::lower::protocol::{
    Binding, Capability, ConstantDim, Deferred, DescriptorField, DimDescriptor, DimKind, Directive, ExprDescriptor,
    ExprDim, Field, Path, Piece, Step, StepKind, TermDescriptor, VarDim, field, offset,
};
use crate::spec::any_size;

/// Flag: the dimension is a size, so it can't be negative.
pub(super) const IS_SIZE: i64 = 1;
/// Flag: the dimension may differ from the expected value (C10.18).
pub(super) const EXCUSED: i64 = 2;

/// `.shape[0]`
pub(super) const DIM_PATH: [Piece<'static>; 1] = [Piece::Value(Directive::DimPath, Field::Path as u32)];

/// `10 (n, from x.shape[0])`
pub(super) fn expected_var() -> [Piece<'static>; 6] {
    [
        EXPECTED_NUMBER,
        Piece::Text(" ("),
        piece(Directive::String, Field::Var),
        Piece::Text(", from "),
        piece(Directive::DimPath, Field::Origin),
        Piece::Text(")"),
    ]
}

/// `int32_t dim(State*, const DimDescriptor* dim, int64_t got, int64_t flags)`; writes the value that the fast path
/// expects to [`Field::Accepted`].
pub(super) fn dim(r: &Binder<'_, '_>) {
    let (dim, got, flags) = (r.c.param(1), r.c.param(2), r.c.param(3));
    let has = |flag| (flags & flag).is_not(0);
    let (size, excused) = (has(IS_SIZE), has(EXCUSED));
    r.look_at_dim(Dim { dim, got, size: Some(size), excused: Some(excused) });
    r.succeed();
}

/// A dimension that is being checked.
#[derive(Clone, Copy)]
struct Dim<'c> {
    dim: Val<'c>,
    got: Val<'c>,
    /// Whether the dimension is a size; `None` if it always is.
    size: Option<Val<'c>>,
    /// Whether the dimension may differ from the expected value; `None` if it never may.
    excused: Option<Val<'c>>,
}

impl<'c> Binder<'c, '_> {
    /// Checks a size.
    pub(super) fn size(&self, dim: Val<'c>, got: Val<'c>) {
        match self.helpers.dim {
            Some(_) => {
                self.dim(dim, got, self.c.i64(IS_SIZE));
            }
            None => self.look_at_dim(Dim { dim, got, size: None, excused: None }),
        }
    }

    /// Checks a stride. `excused` says whether it may differ.
    pub(super) fn stride(&self, dim: Val<'c>, got: Val<'c>, excused: Val<'c>) {
        match self.helpers.dim {
            Some(_) => {
                let (none, some) = (self.c.i64(0), self.c.i64(EXCUSED));
                self.dim(dim, got, excused.select(some, none));
            }
            None => {
                let size = Some(self.c.bool(false));
                self.look_at_dim(Dim { dim, got, size, excused: Some(excused) });
            }
        }
    }

    /// Calls the `dim` function. It exists if descriptors have more than one kind of dimension.
    pub(super) fn dim(&self, dim: Val<'c>, got: Val<'c>, flags: Val<'c>) {
        if let Some(helper) = self.helpers.dim {
            self.call_or_fail(helper, &[self.state(), dim, got, flags]);
        }
    }

    fn look_at_dim(&self, d: Dim<'c>) {
        let Dim { dim, got, .. } = d;
        self.accept_dim(got);
        let kind = dim.read(field!(DimDescriptor, kind));
        let is_const = kind.is(DimKind::Const as i64);
        let computed_dims = self.has(Capability::Var) || self.has(Capability::Expr);
        if self.has(Capability::Const) {
            match computed_dims {
                true => self.c.when(is_const, || self.constant(d)),
                false => self.constant(d),
            }
        }
        if !computed_dims {
            return;
        }
        let natural = || {
            // needed even for a bound variable: a stride may have bound it to a negative value
            self.require_dim(self.natural(d, got), &[Piece::Text(any_size!()), GOT, GOT_NUMBER], || self.tell_got(d));
        };
        let computed = !is_const;
        match self.has(Capability::Const) {
            true => self.c.when(computed, natural),
            false => natural(),
        }
        if self.has(Capability::Var) {
            let is_var = kind.is(DimKind::Var as i64);
            match self.has(Capability::Const) || self.has(Capability::Expr) {
                true => self.c.when(is_var, || self.var(d)),
                false => self.var(d),
            }
        }
        if self.has(Capability::Expr) {
            let is_expr = kind.is(DimKind::Expr as i64);
            let is_expr = match d.excused {
                Some(excused) => is_expr & !excused,
                None => is_expr,
            };
            self.c.when(is_expr, || self.expr(d));
        }
    }

    /// Whether a number is valid for the dimension: a size can't be negative.
    fn natural(&self, d: Dim<'c>, number: Val<'c>) -> Val<'c> {
        let natural = number.ge(0);
        let Some(size) = d.size else { return natural };
        let stride = !size;
        natural | stride
    }

    /// Whether the dimension has the expected value or is excused.
    fn is_expected(&self, d: Dim<'c>, expected: Val<'c>) -> Val<'c> {
        let same = d.got.is(expected);
        d.excused.map_or(same, |excused| same | excused)
    }

    fn tell_got(&self, d: Dim<'c>) {
        self.set_field(Field::Got, d.got);
    }

    /// Records the number that the fast path expects for the dimension. Only strides may differ from the actual value.
    fn accept_dim(&self, value: Val<'c>) {
        if self.has(Capability::Strided) {
            self.set_field(Field::Accepted, value);
        }
    }

    /// Copies a path. Without containers, paths have no steps.
    pub(super) fn copy_path(&self, from: Val<'c>, to: Val<'c>) {
        match self.helpers.copy_path {
            Some(copy_path) => _ = self.c.call(copy_path, &[from, to]),
            None => copy_words(self, from, to),
        }
    }

    fn require_dim(&self, ok: Val<'c>, expected: &[Piece<'_>], tell: impl FnOnce()) {
        self.require_of_telling(ok, VALUE_ERROR, &DIM_PATH, expected, tell);
    }

    fn constant(&self, d: Dim<'c>) {
        let (low, high) = (d.dim.read(field!(ConstantDim, value.low)), d.dim.read(field!(ConstantDim, value.high)));
        let value = halves(low, high);
        self.accept_dim(value);
        self.require_dim(self.is_expected(d, value), &[EXPECTED_NUMBER, GOT, GOT_NUMBER], || {
            self.tell_got(d);
            self.set_field(Field::Expected, value);
        });
    }

    fn var(&self, d: Dim<'c>) {
        let binding = self.binding(d.dim.read(field!(VarDim, var)));
        self.c.when_else(
            self.is_bound(binding),
            || {
                let value = binding.load(Type::I64, offset!(Binding, value));
                self.accept_dim(value);
                self.require_dim(
                    self.is_expected(d, value),
                    &[&expected_var()[..], &[GOT, GOT_NUMBER]].concat(),
                    || {
                        self.tell_got(d);
                        self.tell_var(d.dim, binding, value);
                    },
                );
            },
            || self.bind(binding, d.got),
        );
    }

    /// Sets the fields that [`expected_var`] prints, for a variable that has a value.
    pub(super) fn tell_var(&self, dim: Val<'c>, binding: Val<'c>, value: Val<'c>) {
        self.set_field(Field::Expected, value);
        self.set_field(Field::Var, self.pool_text(dim, field!(VarDim, name)));
        self.set_field(Field::Origin, binding + offset!(Binding, path));
    }

    /// Binds a variable to a value that comes from the present path.
    pub(super) fn bind(&self, binding: Val<'c>, value: Val<'c>) {
        binding.store(offset!(Binding, value), value);
        self.copy_path(self.path(), binding + offset!(Binding, path));
    }

    /// Counts the unbound variables of an expression; also returns the last of them.
    pub(super) fn unknown(&self, expr: Val<'c>) -> (Val<'c>, Val<'c>) {
        let (count, last) = (self.c.var(Type::I64), self.c.var(Type::Ptr));
        count.set(self.c.i64(0));
        let first = expr.behind::<ExprDescriptor>();
        last.set(first);
        self.c.for_up(expr.read(field!(ExprDescriptor, terms)), |index| {
            let term = first.nth_descriptor::<TermDescriptor>(index);
            self.c.when(!self.is_bound(self.binding(term.read(field!(TermDescriptor, var)))), || {
                count.advance(1);
                last.set(term);
            });
        });
        (count.get(), last.get())
    }

    /// Evaluates the code at the offset in a descriptor's field. [`Field::HasValue`] says whether it has a value.
    pub(super) fn value_of(&self, descriptor: Val<'c>, code: DescriptorField, target: Val<'c>) -> (Val<'c>, Val<'c>) {
        let code = self.pool_text(descriptor, code);
        let value = self.helpers.eval.and_then(|eval| self.c.call(eval, &[self.state(), code, target]));
        let has_value = self.field(Field::HasValue).is(HAS_VALUE);
        (value.unwrap_or(target), has_value)
    }

    fn expr(&self, d: Dim<'c>) {
        let expr = self.pool_text(d.dim, field!(ExprDim, expr));
        self.set_field(Field::Expr, expr);
        self.tell_got(d);
        self.set_field(Field::Text, self.pool_text(expr, field!(ExprDescriptor, text)));
        let (unknown, last) = self.unknown(expr);
        let none = unknown.is(0);
        let solvable = unknown.is(1) & last.read(field!(TermDescriptor, solve)).is_not(0);
        self.c.when(none, || self.compare(d, expr));
        self.c.when(solvable, || self.solve(d, expr, last));
        self.c.when(!(none | solvable), || self.defer(d));
    }

    fn compare(&self, d: Dim<'c>, expr: Val<'c>) {
        let text = piece(Directive::String, Field::Text);
        let bindings = piece(Directive::Bindings, Field::Expr);
        let (value, has_value) = self.value_of(expr, field!(ExprDescriptor, code), d.got);
        self.require_dim(
            has_value,
            &[text, Piece::Text(" in 64 bits ("), bindings, Piece::Text("), got "), GOT_NUMBER],
            || {},
        );
        self.accept_dim(value);
        let same = value.is(d.got);
        let pieces =
            [EXPECTED_NUMBER, Piece::Text(" ("), text, Piece::Text(", "), bindings, Piece::Text("), got "), GOT_NUMBER];
        self.require_dim(same, &pieces, || self.set_field(Field::Expected, value));
    }

    fn solve(&self, d: Dim<'c>, expr: Val<'c>, term: Val<'c>) {
        self.set_field(Field::Var, self.pool_text(term, field!(TermDescriptor, name)));
        let binding = self.binding(term.read(field!(TermDescriptor, var)));
        let (candidate, solved) = self.value_of(term, field!(TermDescriptor, solve), d.got);
        // a factor of 0 doesn't determine the other factor (C10.13)
        self.c.when_else(
            self.field(Field::HasValue).uge(ZERO_DIVISOR),
            || self.defer(d),
            || self.solved(d, expr, binding, candidate, solved),
        );
    }

    /// Binds the variable to a candidate value if the expression then has the actual value.
    fn solved(&self, d: Dim<'c>, expr: Val<'c>, binding: Val<'c>, candidate: Val<'c>, solved: Val<'c>) {
        binding.store(offset!(Binding, value), candidate);
        let (value, has_value) = self.value_of(expr, field!(ExprDescriptor, code), d.got);
        let same = value.is(d.got);
        let natural = self.natural(d, candidate);
        let ok = ((solved & has_value) & same) & natural;
        let (text, name) = (piece(Directive::String, Field::Text), piece(Directive::String, Field::Var));
        let alone = expr.read(field!(ExprDescriptor, terms)).is(1);
        let with_others = ok | alone;
        let others = [Piece::Text(" ("), piece(Directive::Bindings, Field::Expr), Piece::Text("), got "), GOT_NUMBER];
        let for_some = [text, Piece::Text(" for some "), name];
        self.require_dim(with_others, &[&for_some[..], &others].concat(), || {});
        self.require_dim(ok, &[&for_some[..], &[GOT, GOT_NUMBER]].concat(), || {});
        self.bind(binding, candidate);
    }

    /// Defers the dimension, or raises an error because it has no value (C10.14, C10.15).
    fn defer(&self, d: Dim<'c>) {
        let pass = self.field(Field::Pass);
        let last = pass.is(Pass::Last as i64);
        let here = self.path();
        let never = if self.has(Capability::Elements) {
            let inside = here.load(Type::I64, offset!(Path, depth)).is_not(0);
            last | inside
        } else {
            last
        };
        let may_defer = !never;
        let text = piece(Directive::String, Field::Text);
        // "where n has", "where n and k have"
        let (unknown, _) = self.unknown(self.field_ptr(Field::Expr));
        let several = !unknown.is(1);
        let names = piece(Directive::Unknown, Field::Expr);
        let no_value = |verb| [text, Piece::Text(", where "), names, Piece::Text(verb), GOT, GOT_NUMBER];
        self.require_dim(may_defer | several, &no_value(" has no value"), || {});
        self.require_dim(may_defer, &no_value(" have no value"), || {});
        self.c.when(pass.is(Pass::First as i64), || {
            let (all, count, size) =
                (self.field_ptr(Field::Deferred), self.field(Field::DeferredCount), self.field(Field::DeferredSize));
            let to = all.nth(count, size);
            to.store(offset!(Deferred, dim), d.dim);
            to.store(offset!(Deferred, got), d.got);
            let arg = self.field(Field::Arg);
            to.store(offset!(Deferred, arg), arg);
            let size = match d.size {
                Some(size) => size.zext(),
                None => self.c.i64(IS_SIZE),
            };
            to.store(offset!(Deferred, is_size), size);
            self.copy_path(here, to + offset!(Deferred, path));
            self.set_field(Field::DeferredCount, count + 1);
        });
        self.set_number(Field::HasValue, NO_VALUE);
    }
}

/// `void copy_path(const Path* from, Path* to)`. A string key may not live beyond the check, so the copy shows it as
/// `[...]` (C7.7).
pub(super) fn copy_path(r: &Binder<'_, '_>) {
    let (from, to) = (r.c.param(0), r.c.param(1));
    copy_words(r, from, to);
    if !r.has(Capability::Elements) {
        return r.c.ret(None);
    }
    r.c.for_up(from.load(Type::I64, offset!(Path, depth)), |index| {
        let (from, to) = (from.nth(index, STEP_SIZE), to.nth(index, STEP_SIZE));
        for word in [offset!(Step, name), offset!(Step, kind), offset!(Step, value)] {
            let word = STEPS + word;
            to.store(word, from.load(Type::I64, word));
        }
        let kind = from.load(Type::I64, STEPS + offset!(Step, kind));
        r.c.when(kind.is(StepKind::Text as i64), || {
            let other = r.c.i64(StepKind::Other as i64);
            to.store(STEPS + offset!(Step, kind), other);
        });
    });
    r.c.ret(None);
}

/// Copies a path without its steps. The number of steps is copied only if there are containers.
fn copy_words<'c>(r: &Binder<'c, '_>, from: Val<'c>, to: Val<'c>) {
    let words = [offset!(Path, name), offset!(Path, member), offset!(Path, dim), offset!(Path, depth)];
    let words = if r.has(Capability::Elements) { &words[..] } else { &words[..3] };
    for &offset in words {
        to.store(offset, from.load(Type::I64, offset));
    }
}
