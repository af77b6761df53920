//! The directives of [`report`](super) that print paths, and variables with values and paths.

use super::printer::Printer;
use crate::ir::{Emitter, Type, Val};
use crate::lower::abi::{CELL_DATA, CELL_SIZE, PAYLOAD, TYPE_INDEX};
use crate::lower::binder::state::BinderState;
use crate::lower::binder::structured::Behind;
use crate::lower::protocol::state::{STEP_SIZE, STEPS};
use crate::lower::protocol::{
    Binding, Capability, Directive, ExprDescriptor, Field, Path, Piece, Step, StepKind, TermDescriptor, TypeKind,
    field, offset,
};
use tvm_ffi_runtime::abi::TypeIndex;

impl<'c> BinderState<'c> for Printer<'c, '_> {
    fn code(&self) -> Emitter<'c> {
        self.c
    }

    fn state(&self) -> Val<'c> {
        // the context of `bind`, whichever template is being read
        self.c.param(2)
    }

    fn has_containers(&self) -> bool {
        self.has(Capability::Elements)
    }
}

/// The value at a byte offset in a path or step that is the context of a template.
const fn at(directive: Directive, offset: i32) -> Piece<'static> {
    Piece::Value(directive, offset as u32 / 8)
}

/// The operands of a variable's inner template.
mod var {
    pub const NAME: u32 = 0;
    pub const VALUE: u32 = 1;
    pub const ORIGIN: u32 = 2;
}

/// The operands of the inner template for a step to the value of a str key.
mod key {
    pub const NAME: u32 = 0;
    pub const TEXT: u32 = 1;
}

const VAR: Piece<'static> = Piece::Value(Directive::String, var::NAME);

impl<'c> Printer<'c, '_> {
    /// The directives for variables and steps.
    pub(super) fn vars_and_steps(&self, byte: Val<'c>) {
        self.on_either(byte, [Directive::Bindings, Directive::Unknown], |unknown| self.vars(unknown));
        if self.has(Capability::Elements) {
            self.on_known_directive(byte, Directive::Steps, || self.steps());
        }
    }

    /// The directives for a path in a field. `byte` has to be one of them, because they are tried last.
    pub(super) fn path_directive(&self, byte: Val<'c>, path: Val<'c>) {
        // `xs[3][1]`
        let mut value_path = vec![at(Directive::String, offset!(Path, name))];
        if self.has(Capability::Elements) {
            value_path.insert(0, Piece::Value(Directive::Steps, 0));
        }
        // `xs[3].shape[0]`; without a member there is no dimension
        const _: () = assert!(offset!(Path, member) == 8);
        let whole = [
            &value_path[..],
            &[
                Piece::Value(Directive::Unless, 1),
                at(Directive::String, offset!(Path, member)),
                at(Directive::Number, offset!(Path, dim)),
                Piece::Text("]"),
            ],
        ]
        .concat();
        let go_through = |pieces: &[Piece<'_>]| {
            self.enter(self.own_template(pieces), path);
        };
        match (self.has(Directive::ValuePath), self.has(Directive::DimPath)) {
            (true, true) => {
                self.on(byte.ult(Directive::DimPath.code(0)), || go_through(&value_path));
                go_through(&whole);
            }
            (true, false) => go_through(&value_path),
            (false, true) => go_through(&whole),
            (false, false) => self.go_on(),
        }
    }

    /// Prints the next step into a container with its template, then returns for the following step, if any.
    fn steps(&self) {
        let path = self.context.get();
        let depth = path.load(Type::I64, offset!(Path, depth));
        let index = self.step.get();
        self.on(index.lt(depth), || {
            self.step.advance(1);
            self.at.advance(-1);
            self.step(path.nth(index, STEP_SIZE) + STEPS);
        });
        self.step.set(self.c.i64(0));
    }

    /// Enters the template of a step.
    fn step(&self, step: Val<'c>) {
        let (name, value) = (at(Directive::String, offset!(Step, name)), at(Directive::Number, offset!(Step, value)));
        let mut template = self.own_template(&[name, Piece::Text("["), value, Piece::Text("]")]);
        if !self.has(TypeKind::Map) {
            return self.enter(template, step);
        }
        let kind = step.load(Type::I64, offset!(Step, kind));
        for (which, pieces) in [
            (StepKind::Key, &[name, Piece::Text(".keys()["), value, Piece::Text("]")][..]),
            (StepKind::Other, &[name, Piece::Text("[...]")]),
        ] {
            template = kind.is(which as i64).select(self.own_template(pieces), template);
        }
        self.on(kind.is(StepKind::Text as i64), || self.text_step(step));
        self.enter(template, step);
    }

    /// Enters the template of a step to the value of a str key.
    fn text_step(&self, step: Val<'c>) {
        let key = step.load(Type::Ptr, offset!(Step, value));
        let (data, size) = (self.c.var(Type::Ptr), self.c.var(Type::I64));
        self.c.when_else(
            key.load(Type::I32, TYPE_INDEX).is(TypeIndex::SMALL_STR.0),
            || {
                data.set(key + PAYLOAD);
                size.set(key.load(Type::I32, TYPE_INDEX + 4).zext());
            },
            || {
                let object = key.load(Type::Ptr, PAYLOAD);
                data.set(object.load(Type::Ptr, CELL_DATA));
                size.set(object.load(Type::I64, CELL_SIZE));
            },
        );
        let (data, size) = (data.get(), size.get());
        let text = self.copy_text(data, size);
        let name = step.load(Type::I64, offset!(Step, name));
        let operands = self.operands();
        for (word, value) in [(key::NAME, name), (key::TEXT, text)] {
            operands.store(8 * word as i32, value);
        }
        let [name, text] = [key::NAME, key::TEXT].map(|word| Piece::Value(Directive::String, word));
        self.enter(self.own_template(&[name, Piece::Text("[\""), text, Piece::Text("\"]")]), operands);
    }

    /// Prints the next bound variable of the expression with its template (the next unbound one if `unknown` is 1).
    /// Then returns for the following one, if any: `m = 3 from x.shape[0], n = 4 from y.shape[1]`, or `k, m and n`.
    fn vars(&self, unknown: Val<'c>) {
        let bound = unknown.is(0);
        let expr = self.field_ptr(Field::Expr);
        let start = self.index.get();
        let terms = expr.read(field!(ExprDescriptor, terms));
        // the next variable, and the number of variables from it on
        let (next, count) = (self.c.var(Type::I64), self.c.var(Type::I64));
        let zero = self.c.i64(0);
        next.set(zero);
        count.set(zero);
        self.c.for_up(terms, |index| {
            let var = expr
                .nth_descriptor::<TermDescriptor>(index)
                .read(field!(TermDescriptor, var).behind::<ExprDescriptor>());
            self.c.when(
                (!(self.binding(var).load(Type::Ptr, offset!(Binding, path.name)).is_not(0) ^ bound)) & index.ge(start),
                || {
                    let (before, known) = (count.get(), next.get());
                    next.set(before.is(0).select(index, known));
                    count.advance(1);
                },
            );
        });
        let (next, count) = (next.get(), count.get());
        let some = count.is_not(0);
        let room = self.has_room();
        self.on(room.map_or(some, |room| some & room), || {
            self.index.set(next + 1);
            self.at.advance(-1);
            let term = expr.nth_descriptor::<TermDescriptor>(next);
            let name = self.pool_text(term, field!(TermDescriptor, name).behind::<ExprDescriptor>());
            let var = term.read(field!(TermDescriptor, var).behind::<ExprDescriptor>());
            let binding = self.binding(var);
            let value = binding.load(Type::I64, offset!(Binding, value));
            let origin = binding + offset!(Binding, path);
            let operands = self.operands();
            for (word, value) in [(var::NAME, name), (var::VALUE, value), (var::ORIGIN, origin)] {
                operands.store(8 * word as i32, value);
            }
            self.enter(self.var_template(bound, start.is(0), count), operands);
        });
        self.index.set(zero);
    }

    /// The template of a variable, including the separator before it.
    fn var_template(&self, bound: Val<'c>, is_first: Val<'c>, count: Val<'c>) -> Val<'c> {
        let (comma, and) = (Piece::Text(", "), Piece::Text(" and "));
        let (value, origin) =
            (Piece::Value(Directive::Number, var::VALUE), Piece::Value(Directive::DimPath, var::ORIGIN));
        let bound_template = self.own_template(&[comma, VAR, Piece::Text(" = "), value, Piece::Text(" from "), origin]);
        let (name, last) = (self.own_template(&[comma, VAR]), self.own_template(&[and, VAR]));
        let template = bound.select(bound_template, count.is(1).select(last, name));
        // the first variable has no separator
        is_first.select(bound.select(bound_template + TEXT_LEN, name + TEXT_LEN), template)
    }
}

/// Bytes of `, ` in a template.
const TEXT_LEN: i64 = 3;
