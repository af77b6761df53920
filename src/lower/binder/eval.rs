//! `eval`: computes an expression in 64 bits.

use super::helper::Binder;
use super::state::BinderState;
use super::structured::{StructuredCode, Var};
use crate::ir::{Hint, IntCC, MemFlags, Type, UnaryOp, Value};
use crate::lower::arithmetic::{Overflow, checked, extremum, total_division};
use crate::lower::protocol::{Binding, Capability, Field, Opcode, offset};
use crate::spec::DimOp;

/// What [`Field::HasValue`] says: bits for what went wrong.
pub(super) const HAS_VALUE: i64 = 0;
/// A result doesn't fit.
pub(super) const NO_VALUE: i64 = 1;
/// Something was divided by 0. A divisor that doesn't fit is not 0, even where its low 64 bits are.
pub(super) const ZERO_DIVISOR: i64 = 2;

/// Bytes of a value on the stack, with its status behind it.
const CELL: i64 = 16;
/// Where the status is.
const STATUS: i32 = 8;

pub(super) fn eval(r: &mut Binder<'_, '_>) {
    let (code, target) = (r.b.param(1), r.b.param(2));
    let stack = r.b.slot(CELL as u32 * Opcode::STACK, 8);
    let stack = r.b.stack_addr(stack);
    let mut m = Machine { at: Var::new(&mut r.b, Type::Ptr), top: Var::new(&mut r.b, Type::Ptr), r };
    m.r.set(m.at, code);
    m.r.set(m.top, stack);
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
    let (result, status) = m.pop();
    m.r.set_field(Field::HasValue, status);
    m.r.b.ret(Some(result));
}

struct Machine<'r, 'm, 't> {
    r: &'r mut Binder<'m, 't>,
    /// The next instruction.
    at: Var,
    /// Behind the last value.
    top: Var,
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

    /// Pushes a value of an instruction that can't fail.
    fn push(&mut self, value: Value) {
        let fine = self.r.b.i64(HAS_VALUE);
        self.push_with(value, fine);
    }

    fn push_with(&mut self, value: Value, status: Value) {
        let top = self.r.get(self.top);
        self.r.b.store(value, top, 0, MemFlags::ALIGNED);
        self.r.b.store(status, top, STATUS, MemFlags::ALIGNED);
        self.r.advance_imm(self.top, CELL);
    }

    /// Takes the last value, with its status.
    fn pop(&mut self) -> (Value, Value) {
        self.r.advance_imm(self.top, -CELL);
        let top = self.r.get(self.top);
        let value = self.r.b.load(Type::I64, top, 0, MemFlags::ALIGNED);
        (value, self.r.b.load(Type::I64, top, STATUS, MemFlags::ALIGNED))
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

    /// The status with a bit more where `cond` holds.
    fn mark(&mut self, status: Value, cond: Value, bit: i64) -> Value {
        let (bit, none) = (self.r.b.i64(bit), self.r.b.i64(HAS_VALUE));
        let bit = self.r.b.select(cond, bit, none);
        self.r.or(status, bit)
    }

    /// An operation: takes two values, and gives the result and whether it fits.
    fn operation(
        &mut self,
        op: Value,
        which: Opcode,
        compute: impl FnOnce(&mut Binder<'_, '_>, Value, Value) -> (Value, Value),
    ) {
        self.on(op, which, |m| {
            let ((y, of_y), (x, of_x)) = (m.pop(), m.pop());
            let (value, ok) = compute(m.r, x, y);
            let status = m.r.or(of_x, of_y);
            let overflows = m.r.b.unary(UnaryOp::Not, ok);
            let mut status = m.mark(status, overflows, NO_VALUE);
            if matches!(which, Opcode::FloorDiv | Opcode::Mod | Opcode::CeilDiv) {
                let bits = m.r.or(y, of_y);
                let zero = m.r.is(bits, 0);
                status = m.mark(status, zero, ZERO_DIVISOR);
            }
            m.push_with(value, status);
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
        if !self.r.has(Capability::DimFunction) {
            return;
        }
        self.operation(op, Opcode::CeilDiv, |r, x, y| divide(r, DimOp::CeilDiv, x, y));
        for (which, op_of_dim) in [(Opcode::Min, DimOp::Min), (Opcode::Max, DimOp::Max)] {
            self.operation(op, which, |r, x, y| (extremum(&mut r.b, op_of_dim, x, y), r.b.bconst(true)));
        }
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
