//! Structured code on top of the IR builder: variables in memory, loops and conditionals. Runtime helpers are cold, so
//! they are written for reading; no value is carried through a block parameter.

use crate::ir::{BinaryOp, Block, ConvertOp, FunctionBuilder, Hint, IntCC, MemFlags, Type, UnaryOp, Value};
use crate::lower::protocol::{Descriptor, DescriptorField};

/// A 64-bit variable in the frame.
#[derive(Clone, Copy)]
pub(super) struct Var {
    address: Value,
    ty: Type,
}

impl Var {
    /// A new variable. To be made in the entry block, so that every block may use it.
    pub(super) fn new(b: &mut FunctionBuilder<'_>, ty: Type) -> Self {
        let slot = b.slot(8, 8);
        Var { address: b.stack_addr(slot), ty }
    }

    /// Where it is.
    pub(super) fn address(self) -> Value {
        self.address
    }
}

/// What has to hold, of which each part is a branch of its own: Cranelift takes more code to make one truth value of several.
pub(super) enum Condition {
    One(Value),
    Any(Vec<Value>),
    All(Vec<Value>),
}

impl From<Value> for Condition {
    fn from(value: Value) -> Self {
        Condition::One(value)
    }
}

/// Structured code, for whatever has a builder.
pub(super) trait StructuredCode<'m>: Sized {
    /// The builder.
    fn builder(&mut self) -> &mut FunctionBuilder<'m>;

    fn get(&mut self, var: Var) -> Value {
        self.builder().load(var.ty, var.address, 0, MemFlags::ALIGNED)
    }

    fn set(&mut self, var: Var, value: Value) {
        self.builder().store(value, var.address, 0, MemFlags::ALIGNED);
    }

    /// Adds bytes to a pointer variable, or a number to an integer one.
    fn advance(&mut self, var: Var, by: Value) {
        let value = self.get(var);
        let next = match var.ty {
            Type::Ptr => self.builder().ptr_add(value, by),
            _ => self.builder().binary(BinaryOp::Add, value, by),
        };
        self.set(var, next);
    }

    fn advance_imm(&mut self, var: Var, by: i64) {
        let by = self.builder().i64(by);
        self.advance(var, by);
    }

    /// Goes to `yes` where the condition holds, as it nearly always does, else to `no`.
    fn branch_likely(&mut self, cond: Condition, yes: Block, no: Block) {
        let b = self.builder();
        let (pieces, any) = match cond {
            Condition::One(value) => (vec![value], true),
            Condition::Any(values) => (values, true),
            Condition::All(values) => (values, false),
        };
        let Some((last, others)) = pieces.split_last() else { return };
        for &part in others {
            let next = b.block();
            match any {
                true => b.branch(part, yes, next, Hint::None),
                false => b.branch(part, next, no, Hint::Likely),
            }
            b.switch_to(next);
        }
        b.branch(*last, yes, no, Hint::Likely);
    }

    /// Runs `then` where `cond` holds.
    fn when(&mut self, cond: Value, then: impl FnOnce(&mut Self)) {
        self.when_else(cond, then, |_| {});
    }

    fn when_else(&mut self, cond: Value, then: impl FnOnce(&mut Self), otherwise: impl FnOnce(&mut Self)) {
        let (yes, no, join) = (self.builder().block(), self.builder().block(), self.builder().block());
        self.builder().branch(cond, yes, no, Hint::None);
        self.builder().switch_to(yes);
        then(self);
        self.builder().jump(join, &[]);
        self.builder().switch_to(no);
        otherwise(self);
        self.builder().jump(join, &[]);
        self.builder().switch_to(join);
    }

    /// Runs `body` on `start`, and on what it gives each time, as long as `more` says so.
    fn repeat(
        &mut self,
        start: Value,
        more: impl FnOnce(&mut FunctionBuilder<'m>, Value) -> Value,
        body: impl FnOnce(&mut Self, Value) -> Value,
    ) {
        let b = self.builder();
        let (head, inside, done) = (b.block(), b.block(), b.block());
        let ty = b.type_of(start);
        let at = b.block_param(head, ty);
        b.jump(head, &[start]);
        b.switch_to(head);
        let more = more(b, at);
        b.branch(more, inside, done, Hint::None);
        b.switch_to(inside);
        let next = body(self, at);
        self.builder().jump(head, &[next]);
        self.builder().switch_to(done);
    }

    /// Runs `body` for 0 up to `count`, an `I64`.
    fn for_up(&mut self, count: Value, body: impl FnOnce(&mut Self, Value)) {
        let zero = self.builder().i64(0);
        let more = |b: &mut FunctionBuilder<'m>, index| b.icmp(IntCC::SLt, index, count);
        self.repeat(zero, more, |e, index| {
            body(e, index);
            let one = e.builder().i64(1);
            e.builder().binary(BinaryOp::Add, index, one)
        });
    }

    /// Runs `body` for `count - 1` down to 0.
    fn for_down(&mut self, count: Value, body: impl FnOnce(&mut Self, Value)) {
        let more = |b: &mut FunctionBuilder<'m>, rest| b.icmp_imm(IntCC::SGt, rest, 0);
        self.repeat(count, more, |e, rest| {
            let one = e.builder().i64(1);
            let index = e.builder().binary(BinaryOp::Sub, rest, one);
            body(e, index);
            index
        });
    }

    /// Runs `body` for each address from `start` up to `end`, `step` bytes apart.
    fn for_each(&mut self, start: Value, end: Value, step: Value, body: impl FnOnce(&mut Self, Value)) {
        let more = |b: &mut FunctionBuilder<'m>, at| b.icmp(IntCC::ULt, at, end);
        self.repeat(start, more, |e, at| {
            body(e, at);
            e.builder().ptr_add(at, step)
        });
    }

    /// The 32-bit word number `index` behind a pointer.
    fn word32(&mut self, base: Value, index: i32) -> Value {
        self.builder().load(Type::I32, base, 4 * index, MemFlags::ALIGNED)
    }

    /// The same, as an unsigned number.
    fn word(&mut self, base: Value, index: i32) -> Value {
        let word = self.word32(base, index);
        self.builder().convert(ConvertOp::ZExt, Type::I64, word)
    }

    /// The same, as a signed number.
    fn signed_word(&mut self, base: Value, index: i32) -> Value {
        let word = self.word32(base, index);
        self.builder().convert(ConvertOp::SExt, Type::I64, word)
    }

    /// A field of the descriptor at an address, as an `I64`.
    fn read(&mut self, descriptor: Value, field: DescriptorField) -> Value {
        self.read_as(Type::I64, descriptor, field)
    }

    /// The same, as an `I32`.
    fn read32(&mut self, descriptor: Value, field: DescriptorField) -> Value {
        self.read_as(Type::I32, descriptor, field)
    }

    fn read_as(&mut self, ty: Type, descriptor: Value, field: DescriptorField) -> Value {
        let value = self.builder().load(field.ty, descriptor, field.offset, MemFlags::ALIGNED);
        if field.ty == ty {
            return value;
        }
        let widen = if field.signed { ConvertOp::SExt } else { ConvertOp::ZExt };
        self.builder().convert(widen, ty, value)
    }

    /// The address behind the `D` at an address.
    fn behind<D: Descriptor>(&mut self, descriptor: Value) -> Value {
        self.builder().ptr_add_imm(descriptor, D::SIZE as i64)
    }

    /// Descriptor `index` of those from an address on.
    fn nth_descriptor<D: Descriptor>(&mut self, first: Value, index: Value) -> Value {
        self.nth(first, index, D::SIZE as i32)
    }

    /// A pointer moved by a number of bytes, which much is read behind. Were it a sum, Cranelift would add it up anew at each access, and
    /// keep both pieces in registers until the last.
    fn base(&mut self, pointer: Value, bytes: Value) -> Value {
        let b = self.builder();
        let negated = b.unary(UnaryOp::Neg, bytes);
        let address = b.convert(ConvertOp::PtrToInt, Type::I64, pointer);
        let address = b.binary(BinaryOp::Sub, address, negated);
        b.convert(ConvertOp::IntToPtr, Type::Ptr, address)
    }

    /// DimKind `index` of those behind `base`, each of so many bytes.
    fn nth(&mut self, base: Value, index: Value, size: i32) -> Value {
        let size = self.builder().i64(i64::from(size));
        self.nth_of(base, index, size)
    }

    /// The same, where the size is a value.
    fn nth_of(&mut self, base: Value, index: Value, size: Value) -> Value {
        let offset = self.builder().binary(BinaryOp::Mul, index, size);
        self.builder().ptr_add(base, offset)
    }

    fn is(&mut self, value: Value, expected: i64) -> Value {
        self.builder().icmp_imm(IntCC::Eq, value, expected)
    }

    fn is_not(&mut self, value: Value, other: i64) -> Value {
        self.builder().icmp_imm(IntCC::Ne, value, other)
    }

    fn and(&mut self, x: Value, y: Value) -> Value {
        self.builder().binary(BinaryOp::And, x, y)
    }

    fn or(&mut self, x: Value, y: Value) -> Value {
        self.builder().binary(BinaryOp::Or, x, y)
    }
}
