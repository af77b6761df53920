//! The directives of [`report`](super) that print paths, and symbols with their values and paths.

use super::printer::Printer;
use crate::ir::{BinaryOp, ConvertOp, IntCC, MemFlags, Type, UnaryOp, Value};
use crate::lower::abi::{CELL_DATA, CELL_SIZE, PAYLOAD, TYPE_INDEX};
use crate::lower::binder::state::BinderState;
use crate::lower::binder::structured::{StructuredCode, Var};
use crate::lower::protocol::state::{STEP_SIZE, STEPS};
use crate::lower::protocol::{
    Binding, Capability, Directive, ExprDescriptor, Field, Path, Piece, Step, StepKind, TermDescriptor, TypeKind,
    field, offset,
};
use tvm_ffi_runtime::abi::TypeIndex;

impl<'m> BinderState<'m> for Printer<'m, '_> {
    fn state(&self) -> Value {
        // that of `bind`, whatever template is gone through
        self.b.param(2)
    }

    fn has_containers(&self) -> bool {
        self.has(Capability::Elements)
    }
}

/// The value at so many bytes in a path or step that is a template's context.
const fn at(directive: Directive, offset: i32) -> Piece<'static> {
    Piece::Value(directive, offset as u32 / 8)
}

/// The operands of a symbol's inner template.
mod symbol {
    pub const NAME: u32 = 0;
    pub const VALUE: u32 = 1;
    pub const ORIGIN: u32 = 2;
}

/// The operands of the inner template of a step to the value of a key that is a str.
mod key {
    pub const NAME: u32 = 0;
    pub const TEXT: u32 = 1;
}

const SYMBOL: Piece<'static> = Piece::Value(Directive::String, symbol::NAME);

impl Printer<'_, '_> {
    /// The directives for symbols and steps.
    pub(super) fn symbols_and_steps(&mut self, byte: Value) {
        self.on_either(byte, [Directive::Bindings, Directive::Unknown], |p, unknown| p.symbols(unknown));
        if self.has(Capability::Elements) {
            self.on_known_directive(byte, Directive::Steps, |p| p.steps());
        }
    }

    /// A path in a field: the last directives that a byte may be.
    pub(super) fn path_directive(&mut self, byte: Value, path: Value) {
        // `xs[3][1]`
        let mut value_path = vec![at(Directive::String, offset!(Path, name))];
        if self.has(Capability::Elements) {
            value_path.insert(0, Piece::Value(Directive::Steps, 0));
        }
        // `xs[3].shape[0]`; there is no dimension where there is nothing before it
        const _: () = assert!(offset!(Path, member) == 8);
        let unless = Piece::Value(Directive::Unless, 1);
        let dimension = [
            unless,
            at(Directive::String, offset!(Path, member)),
            at(Directive::Number, offset!(Path, dim)),
            Piece::Text("]"),
        ];
        let whole = [&value_path[..], &dimension].concat();
        let go_through = |p: &mut Self, pieces: &[Piece<'_>]| {
            let template = p.own_template(pieces);
            p.enter(template, path);
        };
        match (self.has(Directive::ValuePath), self.has(Directive::DimPath)) {
            (true, true) => {
                let is_path = self.b.icmp_imm(IntCC::ULt, byte, i64::from(Directive::DimPath.code(0)));
                self.on(is_path, |p| go_through(p, &value_path));
                go_through(self, &whole);
            }
            (true, false) => go_through(self, &value_path),
            (false, true) => go_through(self, &whole),
            (false, false) => self.go_on(),
        }
    }

    /// Goes through the template of the next step into a container, and comes back for the one behind it, if there is one.
    fn steps(&mut self) {
        let path = self.get(self.context);
        let depth = self.b.load(Type::I64, path, offset!(Path, depth), MemFlags::ALIGNED);
        let index = self.get(self.step);
        let more = self.b.icmp(IntCC::SLt, index, depth);
        self.on(more, |p| {
            p.advance_imm(p.step, 1);
            p.advance_imm(p.at, -1);
            let step = p.nth(path, index, STEP_SIZE);
            let step = p.b.ptr_add_imm(step, i64::from(STEPS));
            p.step(step);
        });
        let first = self.b.i64(0);
        self.set(self.step, first);
    }

    /// Goes through the template of a step.
    fn step(&mut self, step: Value) {
        let (name, value) = (at(Directive::String, offset!(Step, name)), at(Directive::Number, offset!(Step, value)));
        let mut template = self.own_template(&[name, Piece::Text("["), value, Piece::Text("]")]);
        if !self.has(TypeKind::Map) {
            return self.enter(template, step);
        }
        let kind = self.b.load(Type::I64, step, offset!(Step, kind), MemFlags::ALIGNED);
        for (which, pieces) in [
            (StepKind::Key, &[name, Piece::Text(".keys()["), value, Piece::Text("]")][..]),
            (StepKind::Other, &[name, Piece::Text("[...]")]),
        ] {
            let is = self.is(kind, which as i64);
            let its = self.own_template(pieces);
            template = self.b.select(is, its, template);
        }
        let is_text = self.is(kind, StepKind::Text as i64);
        self.on(is_text, |p| p.text_step(step));
        self.enter(template, step);
    }

    /// Goes through the template of a step to the value of a key that is a str.
    fn text_step(&mut self, step: Value) {
        let key = self.b.load(Type::Ptr, step, offset!(Step, value), MemFlags::ALIGNED);
        let (data, size) = (Var::new(&mut self.b, Type::Ptr), Var::new(&mut self.b, Type::I64));
        let index = self.b.load(Type::I32, key, TYPE_INDEX, MemFlags::ALIGNED);
        let small = self.b.icmp_imm(IntCC::Eq, index, i64::from(TypeIndex::SMALL_STR.0));
        self.when_else(
            small,
            |p| {
                let inside = p.b.ptr_add_imm(key, i64::from(PAYLOAD));
                p.set(data, inside);
                let length = p.b.load(Type::I32, key, TYPE_INDEX + 4, MemFlags::ALIGNED);
                let length = p.b.convert(ConvertOp::ZExt, Type::I64, length);
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
        let name = self.b.load(Type::I64, step, offset!(Step, name), MemFlags::ALIGNED);
        let operands = self.operands();
        for (word, value) in [(key::NAME, name), (key::TEXT, text)] {
            self.b.store(value, operands, 8 * word as i32, MemFlags::ALIGNED);
        }
        let [name, text] = [key::NAME, key::TEXT].map(|word| Piece::Value(Directive::String, word));
        let template = self.own_template(&[name, Piece::Text("[\""), text, Piece::Text("\"]")]);
        self.enter(template, operands);
    }

    /// Goes through the template of the expression's next symbol that has a value (or has none, for `unknown` of 1), and comes back for
    /// the one behind it, if there is one: `m = 3 from x.shape[0], n = 4 from y.shape[1]`, or `k, m and n`.
    fn symbols(&mut self, unknown: Value) {
        let bound = self.is(unknown, 0);
        let expr = self.field_ptr(Field::Expr);
        let start = self.get(self.index);
        let terms = self.read(expr, field!(ExprDescriptor, terms));
        // the next, and how many there are from it on
        let (next, count) = (Var::new(&mut self.b, Type::I64), Var::new(&mut self.b, Type::I64));
        let zero = self.b.i64(0);
        self.set(next, zero);
        self.set(count, zero);
        self.for_up(terms, |p, index| {
            let term = p.nth_descriptor::<TermDescriptor>(expr, index);
            let symbol = p.read(term, field!(TermDescriptor, symbol).behind::<ExprDescriptor>());
            let binding = p.binding(symbol);
            let origin = p.b.load(Type::Ptr, binding, offset!(Binding, path.name), MemFlags::ALIGNED);
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
            let term = p.nth_descriptor::<TermDescriptor>(expr, next);
            let name = p.pool_text(term, field!(TermDescriptor, name).behind::<ExprDescriptor>());
            let symbol = p.read(term, field!(TermDescriptor, symbol).behind::<ExprDescriptor>());
            let binding = p.binding(symbol);
            let value = p.b.load(Type::I64, binding, offset!(Binding, value), MemFlags::ALIGNED);
            let origin = p.b.ptr_add_imm(binding, i64::from(offset!(Binding, path)));
            let operands = p.operands();
            for (word, value) in [(symbol::NAME, name), (symbol::VALUE, value), (symbol::ORIGIN, origin)] {
                p.b.store(value, operands, 8 * word as i32, MemFlags::ALIGNED);
            }
            let is_first = p.is(start, 0);
            let template = p.symbol_template(bound, is_first, count);
            p.enter(template, operands);
        });
        self.set(self.index, zero);
    }

    /// The template of a symbol, with what is between it and the one before.
    fn symbol_template(&mut self, bound: Value, is_first: Value, count: Value) -> Value {
        let (comma, and) = (Piece::Text(", "), Piece::Text(" and "));
        let (value, origin) =
            (Piece::Value(Directive::Number, symbol::VALUE), Piece::Value(Directive::DimPath, symbol::ORIGIN));
        let bound_template =
            self.own_template(&[comma, SYMBOL, Piece::Text(" = "), value, Piece::Text(" from "), origin]);
        let (name, last) = (self.own_template(&[comma, SYMBOL]), self.own_template(&[and, SYMBOL]));
        let is_last = self.is(count, 1);
        let unknown = self.b.select(is_last, last, name);
        let template = self.b.select(bound, bound_template, unknown);
        // the first has nothing before it
        let bound_template = self.b.ptr_add_imm(bound_template, TEXT_LEN);
        let name = self.b.ptr_add_imm(name, TEXT_LEN);
        let first = self.b.select(bound, bound_template, name);
        self.b.select(is_first, first, template)
    }
}

/// Bytes of `, ` in a template.
const TEXT_LEN: i64 = 3;
