//! `eval`: computes an expression in 64-bit arithmetic.

use super::helper::Binder;
use super::state::BinderState;
use super::structured::{Behind, halves};
use crate::ir::{Emitter, Hint, IntCC, Type, Val, Var};
use crate::lower::arithmetic::{Overflow, checked, extremum, total_division};
use crate::lower::protocol::{Binding, Capability, Field, Opcode, offset};
use crate::spec::DimOp;

/// Values of [`Field::HasValue`]: a bit for each cause of failure.
pub(super) const HAS_VALUE: i64 = 0;
/// A result doesn't fit in 64 bits.
pub(super) const NO_VALUE: i64 = 1;
/// A division by 0. A divisor that doesn't fit is not 0, even if its low 64 bits are.
pub(super) const ZERO_DIVISOR: i64 = 2;

/// Bytes of a stack entry: a value followed by its status.
const CELL: i64 = 16;
/// The offset of the status in an entry.
const STATUS: i32 = 8;

pub(super) fn eval(r: &Binder<'_, '_>) {
    let c = r.c;
    let (code, target) = (c.param(1), c.param(2));
    let stack = c.slot(CELL as usize * Opcode::STACK as usize);
    let m = Machine { r, c, at: c.var(Type::Ptr), top: c.var(Type::Ptr) };
    m.at.set(code);
    m.top.set(stack);
    let (head, next, done) = (c.block(), c.block(), c.block());
    c.jump(head, &[]);
    c.switch_to(head);
    let op = m.at.get().word(0);
    m.at.advance(4);
    c.branch(op.is(Opcode::End as i64), done, next, Hint::None);
    c.switch_to(next);
    m.leaves(op, target);
    m.operations(op);
    c.jump(head, &[]);
    c.switch_to(done);
    let (result, status) = m.pop();
    r.set_field(Field::HasValue, status);
    c.ret(result);
}

struct Machine<'r, 'c, 't> {
    r: &'r Binder<'c, 't>,
    c: Emitter<'c>,
    /// The address of the next instruction.
    at: Var<'c>,
    /// The end of the stack.
    top: Var<'c>,
}

impl<'c> Machine<'_, 'c, '_> {
    fn on(&self, op: Val<'c>, which: Opcode, then: impl FnOnce()) {
        self.c.pass_unless(op.is(which as i64), then);
    }

    /// Pushes the value of an instruction that can't fail.
    fn push(&self, value: Val<'c>) {
        self.push_with(value, self.c.i64(HAS_VALUE));
    }

    fn push_with(&self, value: Val<'c>, status: Val<'c>) {
        let top = self.top.get();
        top.store(0, value);
        top.store(STATUS, status);
        self.top.advance(CELL);
    }

    /// Pops the last value with its status.
    fn pop(&self) -> (Val<'c>, Val<'c>) {
        self.top.advance(-CELL);
        let top = self.top.get();
        (top.load(Type::I64, 0), top.load(Type::I64, STATUS))
    }

    fn leaves(&self, op: Val<'c>, target: Val<'c>) {
        self.on(op, Opcode::Const, || {
            let at = self.at.get();
            let value = halves(at.word(0), at.word(1));
            self.at.advance(8);
            self.push(value);
        });
        self.on(op, Opcode::Var, || {
            let value = self.r.binding(self.at.get().word(0)).load(Type::I64, offset!(Binding, value));
            self.at.advance(4);
            self.push(value);
        });
        self.on(op, Opcode::Target, || self.push(target));
    }

    /// The status, with another bit set if `cond` holds.
    fn mark(&self, status: Val<'c>, cond: Val<'c>, bit: i64) -> Val<'c> {
        status | cond.select(self.c.i64(bit), self.c.i64(HAS_VALUE))
    }

    /// Emits an operation: pops two values and pushes the result. `compute` returns the result and whether it fits.
    fn operation(&self, op: Val<'c>, which: Opcode, compute: impl FnOnce(Val<'c>, Val<'c>) -> (Val<'c>, Val<'c>)) {
        self.on(op, which, || {
            let ((y, of_y), (x, of_x)) = (self.pop(), self.pop());
            let (value, ok) = compute(x, y);
            let mut status = self.mark(of_x | of_y, !ok, NO_VALUE);
            if matches!(which, Opcode::FloorDiv | Opcode::Mod | Opcode::CeilDiv) {
                status = self.mark(status, (y | of_y).is(0), ZERO_DIVISOR);
            }
            self.push_with(value, status);
        });
    }

    fn operations(&self, op: Val<'c>) {
        for (which, op_of_dim) in [(Opcode::Add, DimOp::Add), (Opcode::Sub, DimOp::Sub), (Opcode::Mul, DimOp::Mul)] {
            self.operation(op, which, |x, y| self.checked(op_of_dim, x, y));
        }
        self.operation(op, Opcode::FloorDiv, |x, y| divide(DimOp::FloorDiv, x, y));
        self.operation(op, Opcode::Mod, |x, y| divide(DimOp::Mod, x, y));
        if !self.r.has(Capability::DimFunction) {
            return;
        }
        self.operation(op, Opcode::CeilDiv, |x, y| divide(DimOp::CeilDiv, x, y));
        for (which, op_of_dim) in [(Opcode::Min, DimOp::Min), (Opcode::Max, DimOp::Max)] {
            self.operation(op, which, |x, y| {
                (self.c.value(|b| extremum(b, op_of_dim, x.value(), y.value())), self.c.bool(true))
            });
        }
    }

    /// A sum, difference or product, and whether it fits in 64 bits.
    fn checked(&self, op: DimOp, x: Val<'c>, y: Val<'c>) -> (Val<'c>, Val<'c>) {
        let mut fits = x.value();
        let value = self.c.value(|b| {
            let (value, overflow) = checked(b, op, x.value(), y.value());
            fits = match overflow {
                Overflow::Negative(sign) => b.icmp_imm(IntCC::SGe, sign, 0),
                Overflow::Different(x, y) => b.icmp(IntCC::Eq, x, y),
            };
            value
        });
        (value, self.c.val(fits))
    }
}

/// The result of a division, and whether it exists and fits.
fn divide<'c>(op: DimOp, x: Val<'c>, y: Val<'c>) -> (Val<'c>, Val<'c>) {
    let divided = y.emitter().value(|b| total_division(b, op, x.value(), y.value()));
    let nonzero = y.is_not(0);
    if op == DimOp::Mod {
        return (divided, nonzero);
    }
    // the negative of the minimum doesn't fit
    let fits = y.is_not(-1) | x.is_not(i64::MIN);
    (divided, nonzero & fits)
}
