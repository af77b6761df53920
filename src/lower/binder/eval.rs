//! `eval`: computes an expression in 64 bits.

use super::helper::Binder;
use super::state::BinderState;
use super::structured::{StructuredCode, Var};
use crate::ir::{Hint, IntCC, MemFlags, Type, Value};
use crate::lower::arithmetic::{Overflow, checked, total_division};
use crate::lower::protocol::{Binding, Field, Opcode, offset};
use crate::spec::DimOp;

/// What [`Field::HasValue`] says.
pub(super) const NO_VALUE: i64 = 0;
pub(super) const HAS_VALUE: i64 = 1;
pub(super) const ZERO_DIVISOR: i64 = 2;

/// Bytes of a value on the stack.
const CELL: i64 = 8;

pub(super) fn eval(r: &mut Binder<'_, '_>) {
    let (code, target) = (r.b.param(1), r.b.param(2));
    let stack = r.b.slot(CELL as u32 * Opcode::STACK, 8);
    let stack = r.b.stack_addr(stack);
    let mut m = Machine {
        at: Var::new(&mut r.b, Type::Ptr),
        top: Var::new(&mut r.b, Type::Ptr),
        status: Var::new(&mut r.b, Type::I64),
        r,
    };
    m.r.set(m.at, code);
    m.r.set(m.top, stack);
    let fine = m.r.b.i64(HAS_VALUE);
    m.r.set(m.status, fine);
    let (head, next, done) = (m.r.b.block(), m.r.b.block(), m.r.b.block());
    m.r.b.jump(head, &[]);
    m.r.b.switch_to(head);
    let at = m.r.get(m.at);
    let op = m.r.word(at, 0);
    m.r.advance_imm(m.at, 4);
    let end = m.r.is(op, Opcode::End as i64);
    m.r.b.branch(end, done, next, Hint::None);
    m.r.b.switch_to(next);
    m.leaves(op, target);
    m.operations(op);
    m.r.b.jump(head, &[]);
    m.r.b.switch_to(done);
    let result = m.pop();
    let status = m.r.get(m.status);
    m.r.set_field(Field::HasValue, status);
    m.r.b.ret(Some(result));
}

struct Machine<'r, 'm, 't> {
    r: &'r mut Binder<'m, 't>,
    /// The next instruction.
    at: Var,
    /// Behind the last value.
    top: Var,
    /// [`NO_VALUE`] once a result doesn't fit, [`ZERO_DIVISOR`] once something was divided by 0.
    status: Var,
}

impl Machine<'_, '_, '_> {
    fn on(&mut self, op: Value, which: Opcode, then: impl FnOnce(&mut Self)) {
        let is = self.r.is(op, which as i64);
        let (yes, join) = (self.r.b.block(), self.r.b.block());
        self.r.b.branch(is, yes, join, Hint::None);
        self.r.b.switch_to(yes);
        then(self);
        self.r.b.jump(join, &[]);
        self.r.b.switch_to(join);
    }

    fn push(&mut self, value: Value) {
        let top = self.r.get(self.top);
        self.r.b.store(value, top, 0, MemFlags::ALIGNED);
        self.r.advance_imm(self.top, CELL);
    }

    fn pop(&mut self) -> Value {
        self.r.advance_imm(self.top, -CELL);
        let top = self.r.get(self.top);
        self.r.b.load(Type::I64, top, 0, MemFlags::ALIGNED)
    }

    fn leaves(&mut self, op: Value, target: Value) {
        self.on(op, Opcode::Const, |m| {
            let at = m.r.get(m.at);
            let (low, high) = (m.r.word(at, 0), m.r.word(at, 1));
            let value = m.r.halves(low, high);
            m.r.advance_imm(m.at, 8);
            m.push(value);
        });
        self.on(op, Opcode::Symbol, |m| {
            let at = m.r.get(m.at);
            let symbol = m.r.word(at, 0);
            let binding = m.r.binding(symbol);
            let value = m.r.b.load(Type::I64, binding, offset!(Binding, value), MemFlags::ALIGNED);
            m.r.advance_imm(m.at, 4);
            m.push(value);
        });
        self.on(op, Opcode::Target, |m| m.push(target));
    }

    /// Marks that a result doesn't fit, unless `ok`.
    fn require(&mut self, ok: Value) {
        let none = self.r.b.i64(NO_VALUE);
        let before = self.r.get(self.status);
        let divided = self.r.is(before, ZERO_DIVISOR);
        let keep = self.r.or(ok, divided);
        let status = self.r.b.select(keep, before, none);
        self.r.set(self.status, status);
    }

    fn mark_zero_divisor(&mut self, divisor: Value) {
        let zero = self.r.is(divisor, 0);
        let before = self.r.get(self.status);
        let mark = self.r.b.i64(ZERO_DIVISOR);
        let status = self.r.b.select(zero, mark, before);
        self.r.set(self.status, status);
    }

    /// An operation: takes two values, and gives the result and whether it fits.
    fn operation(
        &mut self,
        op: Value,
        which: Opcode,
        compute: impl FnOnce(&mut Binder<'_, '_>, Value, Value) -> (Value, Value),
    ) {
        self.on(op, which, |m| {
            let (y, x) = (m.pop(), m.pop());
            let (value, ok) = compute(m.r, x, y);
            m.require(ok);
            if matches!(which, Opcode::FloorDiv | Opcode::Mod) {
                m.mark_zero_divisor(y);
            }
            m.push(value);
        });
    }

    fn operations(&mut self, op: Value) {
        for (which, op_of_dim) in [(Opcode::Add, DimOp::Add), (Opcode::Sub, DimOp::Sub), (Opcode::Mul, DimOp::Mul)] {
            self.operation(op, which, |r, x, y| {
                let (value, overflow) = checked(&mut r.b, op_of_dim, x, y);
                let fits = match overflow {
                    Overflow::Negative(sign) => r.b.icmp_imm(IntCC::SGe, sign, 0),
                    Overflow::Different(x, y) => r.b.icmp(IntCC::Eq, x, y),
                };
                (value, fits)
            });
        }
        self.operation(op, Opcode::FloorDiv, |r, x, y| divide(r, DimOp::FloorDiv, x, y));
        self.operation(op, Opcode::Mod, |r, x, y| divide(r, DimOp::Mod, x, y));
    }
}

/// The result of a division, and whether there is one that fits.
fn divide(r: &mut Binder<'_, '_>, op: DimOp, x: Value, y: Value) -> (Value, Value) {
    let divided = total_division(&mut r.b, op, x, y);
    let nonzero = r.is_not(y, 0);
    if op == DimOp::Mod {
        return (divided, nonzero);
    }
    // the negative of the least number doesn't fit
    let (other_divisor, other_number) = (r.is_not(y, -1), r.is_not(x, i64::MIN));
    let fits = r.or(other_divisor, other_number);
    (divided, r.and(nonzero, fits))
}
