//! Structured code: fixed programs, such as runtime helpers, expressed as expressions and nested blocks.
//!
//! An [`Emitter`] is shared, so expressions nest: `base + index * 16` emits a product and then a sum. Control flow
//! takes closures: the code that a closure emits is the block that the condition or loop executes.

use std::array;
use std::cell::RefCell;
use std::ops::{Add, BitAnd, BitOr, BitXor, Mul, Neg, Not, Shl, Shr, Sub};

use super::builder::FunctionBuilder;
use super::inst::{BinaryOp, Block, ConvertOp, DataRef, FuncRef, Hint, IntCC, MemFlags, StackSlot, UnaryOp, Value};
use super::module::{Linkage, Module};
use super::types::{FuncSig, Type};

/// A shared builder, for any lifetime of its module.
trait Shared {
    fn emit(&self, write: &mut dyn FnMut(&mut FunctionBuilder<'_>));
}

impl Shared for RefCell<&mut FunctionBuilder<'_>> {
    fn emit(&self, write: &mut dyn FnMut(&mut FunctionBuilder<'_>)) {
        write(&mut self.borrow_mut());
    }
}

/// A function under construction.
#[derive(Clone, Copy)]
pub(crate) struct Emitter<'c>(&'c dyn Shared);

/// A value in structured code. Operators take other values, or constants of the value's own type; `+` moves a pointer
/// by bytes.
#[derive(Clone, Copy)]
pub(crate) struct Val<'c> {
    emitter: Emitter<'c>,
    value: Value,
}

/// A 64-bit variable in the frame, or a smaller one.
#[derive(Clone, Copy)]
pub(crate) struct Var<'c> {
    address: Val<'c>,
    ty: Type,
}

impl Module {
    /// Defines a declared function; `write` emits its code.
    pub(crate) fn define(&mut self, func: FuncRef, write: impl FnOnce(Emitter<'_>)) {
        let mut b = FunctionBuilder::new(self, func);
        b.structured(write);
        b.finish();
    }

    /// Defines a local function; `write` emits its code.
    pub(crate) fn local(&mut self, name: impl Into<String>, sig: FuncSig, write: impl FnOnce(Emitter<'_>)) -> FuncRef {
        let func = self.declare(name, sig, Linkage::Local);
        self.define(func, write);
        func
    }

    /// As [`local`](Self::local), for a function off the usual path.
    pub(crate) fn cold_local(
        &mut self,
        name: impl Into<String>,
        sig: FuncSig,
        write: impl FnOnce(Emitter<'_>),
    ) -> FuncRef {
        let func = self.declare_cold(name, sig);
        self.define(func, write);
        func
    }

    /// The function of that name. If the module doesn't have it, [`local`](Self::local) defines it.
    pub(crate) fn local_once(&mut self, name: &str, sig: FuncSig, write: impl FnOnce(Emitter<'_>)) -> FuncRef {
        match self.function_named(name) {
            Some((known, _)) => known,
            None => self.local(name, sig, write),
        }
    }

    /// The function of that name. If the module doesn't have it, [`cold_local`](Self::cold_local) defines it.
    pub(crate) fn cold_local_once(&mut self, name: &str, sig: FuncSig, write: impl FnOnce(Emitter<'_>)) -> FuncRef {
        match self.function_named(name) {
            Some((known, _)) => known,
            None => self.cold_local(name, sig, write),
        }
    }
}

impl FunctionBuilder<'_> {
    /// Writes structured code, starting in the current block. A closure that gets the builder itself
    /// ([`Emitter::with`]) must not use the emitter.
    pub(crate) fn structured<R>(&mut self, write: impl FnOnce(Emitter<'_>) -> R) -> R {
        write(Emitter(&RefCell::new(self)))
    }
}

impl<'c> Emitter<'c> {
    /// Calls `write` with the builder; `result` is a placeholder for what it returns.
    fn run<R>(self, mut result: R, write: impl FnOnce(&mut FunctionBuilder<'_>) -> R) -> R {
        let mut write = Some(write);
        self.0.emit(&mut |b| {
            if let Some(write) = write.take() {
                result = write(b);
            }
        });
        result
    }

    /// Emits code with the builder.
    pub fn with<R: Default>(self, write: impl FnOnce(&mut FunctionBuilder<'_>) -> R) -> R {
        self.run(R::default(), write)
    }

    /// Emits a value with the builder.
    pub fn value(self, write: impl FnOnce(&mut FunctionBuilder<'_>) -> Value) -> Val<'c> {
        self.val(self.run(Value::from_u32(0), write))
    }

    /// Declares or finds a function with the module.
    pub fn func(self, find: impl FnOnce(&mut Module) -> FuncRef) -> FuncRef {
        self.run(FuncRef::from_u32(0), |b| find(b.module()))
    }

    /// Wraps a value of the builder.
    pub fn val(self, value: Value) -> Val<'c> {
        Val { emitter: self, value }
    }

    /// The function's parameter number `index`.
    pub fn param(self, index: usize) -> Val<'c> {
        self.value(|b| b.param(index))
    }

    /// The function's first parameters.
    pub fn params<const N: usize>(self) -> [Val<'c>; N] {
        array::from_fn(|index| self.param(index))
    }

    /// An `I64` constant.
    pub fn i64(self, value: i64) -> Val<'c> {
        self.value(|b| b.i64(value))
    }

    /// An `I32` constant.
    pub fn i32(self, value: i64) -> Val<'c> {
        self.value(|b| b.iconst(Type::I32, value))
    }

    /// An `I8` constant.
    pub fn i8(self, value: i64) -> Val<'c> {
        self.value(|b| b.iconst(Type::I8, value))
    }

    /// A truth value.
    pub fn bool(self, value: bool) -> Val<'c> {
        self.value(|b| b.bconst(value))
    }

    /// The pointer NULL.
    pub fn null(self) -> Val<'c> {
        self.ptr(0)
    }

    /// An absolute address.
    pub fn ptr(self, address: u64) -> Val<'c> {
        self.value(|b| b.ptr_const(address))
    }

    /// The address `offset` bytes into static data.
    pub fn data(self, data: DataRef, offset: u32) -> Val<'c> {
        self.value(|b| b.data_addr(data, offset))
    }

    /// The address of a function.
    pub fn func_addr(self, func: FuncRef) -> Val<'c> {
        self.value(|b| b.func_addr(func))
    }

    /// A new slot in the frame, aligned to 8 bytes.
    pub fn reserve(self, size: usize) -> StackSlot {
        self.run(StackSlot::from_u32(0), |b| b.slot(size as u32, 8))
    }

    /// The address of a new slot in the frame, aligned to 8 bytes.
    pub fn slot(self, size: usize) -> Val<'c> {
        self.stack_addr(self.reserve(size))
    }

    /// The address of a slot in the frame.
    pub fn stack_addr(self, slot: StackSlot) -> Val<'c> {
        self.value(|b| b.stack_addr(slot))
    }

    /// A new variable. Create it where it dominates all its uses.
    pub fn var(self, ty: Type) -> Var<'c> {
        Var { address: self.slot(8), ty }
    }

    /// Emits a call; returns its result, if the callee has one.
    pub fn call(self, callee: FuncRef, args: &[Val<'c>]) -> Option<Val<'c>> {
        let args: Vec<Value> = args.iter().map(|arg| arg.value).collect();
        self.with(|b| b.call(callee, &args)).map(|value| self.val(value))
    }

    /// A call of a function that has a result.
    pub fn result(self, callee: FuncRef, args: &[Val<'c>]) -> Val<'c> {
        self.call(callee, args).unwrap_or_else(|| self.i32(0))
    }

    /// Emits a call through a pointer; returns its result, if the signature has one.
    pub fn call_indirect(self, sig: FuncSig, callee: Val<'c>, args: &[Val<'c>]) -> Option<Val<'c>> {
        let args: Vec<Value> = args.iter().map(|arg| arg.value).collect();
        let result = self.with(|b| {
            let sig = b.signature(sig);
            b.call_indirect(sig, callee.value, &args)
        });
        result.map(|value| self.val(value))
    }

    /// A call through a pointer of a function that has a result.
    pub fn indirect_result(self, sig: FuncSig, callee: Val<'c>, args: &[Val<'c>]) -> Val<'c> {
        self.call_indirect(sig, callee, args).unwrap_or_else(|| self.i32(0))
    }

    // Control flow.

    /// A new block.
    pub fn block(self) -> Block {
        self.run(Block::from_u32(0), |b| b.block())
    }

    /// New blocks.
    pub fn blocks<const N: usize>(self) -> [Block; N] {
        array::from_fn(|_| self.block())
    }

    /// A new block off the usual path.
    pub fn cold_block(self) -> Block {
        self.run(Block::from_u32(0), |b| b.cold_block())
    }

    /// Adds a parameter to a block.
    pub fn block_param(self, block: Block, ty: Type) -> Val<'c> {
        self.value(|b| b.block_param(block, ty))
    }

    /// Appends further code to `block`.
    pub fn switch_to(self, block: Block) {
        self.with(|b| b.switch_to(block));
    }

    /// The current block.
    pub fn current(self) -> Block {
        self.run(Block::from_u32(0), |b| b.current())
    }

    /// Writes `block`, then returns to the current one.
    pub fn aside(self, block: Block, write: impl FnOnce()) {
        let here = self.current();
        self.switch_to(block);
        write();
        self.switch_to(here);
    }

    /// Ends the block with a jump, unless it is terminated.
    pub fn jump(self, block: Block, args: &[Val<'c>]) {
        let args: Vec<Value> = args.iter().map(|arg| arg.value).collect();
        self.with(|b| b.jump(block, &args));
    }

    /// Ends the block with a branch.
    pub fn branch(self, cond: Val<'c>, yes: Block, no: Block, hint: Hint) {
        self.with(|b| b.branch(cond.value, yes, no, hint));
    }

    /// Like [`branch`](Self::branch), with arguments for the blocks.
    pub fn branch_with(self, cond: Val<'c>, yes: (Block, &[Val<'c>]), no: (Block, &[Val<'c>]), hint: Hint) {
        let [then, otherwise] = [yes.1, no.1].map(|args| args.iter().map(|arg| arg.value).collect::<Vec<_>>());
        self.with(|b| b.branch_with(cond.value, (yes.0, &then), (no.0, &otherwise), hint));
    }

    /// Whether the current block is terminated.
    pub fn is_terminated(self) -> bool {
        self.with(|b| b.is_terminated())
    }

    /// Ends the block by leaving the function.
    pub fn ret(self, value: impl Into<Option<Val<'c>>>) {
        let value = value.into().map(|value| value.value);
        self.with(|b| b.ret(value));
    }

    /// Runs `then` if `cond` holds. The other path gets its own block.
    pub fn when(self, cond: Val<'c>, then: impl FnOnce()) {
        self.when_else(cond, then, || {});
    }

    /// As [`when`](Self::when), but the other path branches directly past `then`. Backends arrange the two forms
    /// differently, so a change from one to the other changes the bytes of objects.
    pub fn pass_unless(self, cond: Val<'c>, then: impl FnOnce()) {
        let (yes, next) = (self.block(), self.block());
        self.branch(cond, yes, next, Hint::None);
        self.switch_to(yes);
        then();
        self.jump(next, &[]);
        self.switch_to(next);
    }

    /// Runs `then` if `cond` holds, else `otherwise`.
    pub fn when_else(self, cond: Val<'c>, then: impl FnOnce(), otherwise: impl FnOnce()) {
        let (yes, no, join) = (self.block(), self.block(), self.block());
        self.branch(cond, yes, no, Hint::None);
        self.switch_to(yes);
        then();
        self.jump(join, &[]);
        self.switch_to(no);
        otherwise();
        self.jump(join, &[]);
        self.switch_to(join);
    }

    /// Continues if `cond` holds, which is likely; else runs `otherwise`, which ends the function.
    pub fn require(self, cond: Val<'c>, otherwise: impl FnOnce()) {
        let (next, bad) = (self.block(), self.cold_block());
        self.branch(cond, next, bad, Hint::Likely);
        self.switch_to(bad);
        otherwise();
        self.switch_to(next);
    }

    /// Continues if `cond` holds, else branches to `no`.
    pub fn or_leave(self, cond: Val<'c>, no: Block) {
        let next = self.block();
        self.branch(cond, next, no, Hint::None);
        self.switch_to(next);
    }

    /// Continues if `cond` holds, which is likely; else branches to `no` with `args`.
    pub fn or_fail(self, cond: Val<'c>, no: Block, args: &[Val<'c>]) {
        let next = self.block();
        self.branch_with(cond, (next, &[]), (no, args), Hint::Likely);
        self.switch_to(next);
    }

    /// Emits a loop that runs `body` on `start` and then on its own results, while `more` holds. Returns the last
    /// value.
    pub fn repeat(
        self,
        start: Val<'c>,
        more: impl FnOnce(Val<'c>) -> Val<'c>,
        body: impl FnOnce(Val<'c>) -> Val<'c>,
    ) -> Val<'c> {
        let (head, inside, done) = (self.block(), self.block(), self.block());
        let at = self.block_param(head, start.ty());
        self.jump(head, &[start]);
        self.switch_to(head);
        self.branch(more(at), inside, done, Hint::None);
        self.switch_to(inside);
        let next = body(at);
        self.jump(head, &[next]);
        self.switch_to(done);
        at
    }

    /// Runs `body` for each number from 0 up to but excluding `count`, an `I64`.
    pub fn for_up(self, count: Val<'c>, body: impl FnOnce(Val<'c>)) {
        self.repeat(
            self.i64(0),
            |index| index.lt(count),
            |index| {
                body(index);
                index + 1
            },
        );
    }

    /// Runs `body` for `count - 1` down to 0.
    pub fn for_down(self, count: Val<'c>, body: impl FnOnce(Val<'c>)) {
        self.repeat(
            count,
            |rest| rest.gt(0),
            |rest| {
                let index = rest - 1;
                body(index);
                index
            },
        );
    }
}

/// An operand of an operation: a value, or a constant.
pub(crate) trait Operand<'c> {
    /// The value; a constant gets the type of the other operand.
    fn beside(self, other: Val<'c>) -> Val<'c>;
    /// The value; a constant becomes an `I64`.
    fn bytes(self, emitter: Emitter<'c>) -> Val<'c>;
}

impl<'c> Operand<'c> for Val<'c> {
    fn beside(self, _: Val<'c>) -> Val<'c> {
        self
    }

    fn bytes(self, _: Emitter<'c>) -> Val<'c> {
        self
    }
}

impl<'c, N: Into<i64>> Operand<'c> for N {
    fn beside(self, other: Val<'c>) -> Val<'c> {
        let number = self.into();
        match other.ty() {
            Type::Ptr => other.emitter.value(|b| b.ptr_const(number as u64)),
            ty => other.emitter.value(|b| b.iconst(ty, number)),
        }
    }

    fn bytes(self, emitter: Emitter<'c>) -> Val<'c> {
        emitter.i64(self.into())
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:expr;)*) => {
        $(impl<'c, R: Operand<'c>> $trait<R> for Val<'c> {
            type Output = Val<'c>;

            fn $method(self, other: R) -> Val<'c> {
                self.binary($op, other)
            }
        })*
    };
}

operators! {
    Sub sub BinaryOp::Sub;
    Mul mul BinaryOp::Mul;
    BitAnd bitand BinaryOp::And;
    BitOr bitor BinaryOp::Or;
    BitXor bitxor BinaryOp::Xor;
    Shl shl BinaryOp::Shl;
    Shr shr BinaryOp::LShr;
}

impl<'c, R: Operand<'c>> Add<R> for Val<'c> {
    type Output = Val<'c>;

    fn add(self, other: R) -> Val<'c> {
        match self.ty() {
            Type::Ptr => {
                let bytes = other.bytes(self.emitter).value;
                self.emitter.value(|b| b.ptr_add(self.value, bytes))
            }
            _ => self.binary(BinaryOp::Add, other),
        }
    }
}

impl<'c> Not for Val<'c> {
    type Output = Val<'c>;

    fn not(self) -> Val<'c> {
        self.emitter.value(|b| b.unary(UnaryOp::Not, self.value))
    }
}

impl<'c> Neg for Val<'c> {
    type Output = Val<'c>;

    fn neg(self) -> Val<'c> {
        self.emitter.value(|b| b.unary(UnaryOp::Neg, self.value))
    }
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $method:ident $cc:expr;)*) => {
        impl<'c> Val<'c> {
            $($(#[$doc])* pub fn $method(self, other: impl Operand<'c>) -> Val<'c> {
                let other = other.beside(self).value;
                self.emitter.value(|b| b.icmp($cc, self.value, other))
            })*
        }
    };
}

comparisons! {
    /// Whether both are equal.
    is IntCC::Eq;
    /// Whether both differ.
    is_not IntCC::Ne;
    /// Whether this is less, as a signed number.
    lt IntCC::SLt;
    /// Whether this is at most the other, as signed numbers.
    le IntCC::SLe;
    /// Whether this is greater, as a signed number.
    gt IntCC::SGt;
    /// Whether this is at least the other, as signed numbers.
    ge IntCC::SGe;
    /// Whether this is less, as an unsigned number.
    ult IntCC::ULt;
    /// Whether this is at most the other, as unsigned numbers.
    ule IntCC::ULe;
    /// Whether this is greater, as an unsigned number.
    ugt IntCC::UGt;
    /// Whether this is at least the other, as unsigned numbers.
    uge IntCC::UGe;
}

impl<'c> Val<'c> {
    /// The emitter that the value belongs to.
    pub fn emitter(self) -> Emitter<'c> {
        self.emitter
    }

    /// The builder's value.
    pub fn value(self) -> Value {
        self.value
    }

    /// Its type.
    pub fn ty(self) -> Type {
        self.emitter.run(Type::I64, |b| b.type_of(self.value))
    }

    /// An operation that has no operator.
    pub fn binary(self, op: BinaryOp, other: impl Operand<'c>) -> Val<'c> {
        let other = other.beside(self).value;
        self.emitter.value(|b| b.binary(op, self.value, other))
    }

    /// `then` if this holds, else `otherwise`.
    pub fn select(self, then: Val<'c>, otherwise: Val<'c>) -> Val<'c> {
        self.emitter.value(|b| b.select(self.value, then.value, otherwise.value))
    }

    /// A conversion.
    pub fn convert(self, op: ConvertOp, ty: Type) -> Val<'c> {
        self.emitter.value(|b| b.convert(op, ty, self.value))
    }

    /// Zero-extends an unsigned number or a truth value to `I64`.
    pub fn zext(self) -> Val<'c> {
        self.convert(ConvertOp::ZExt, Type::I64)
    }

    /// Sign-extends a signed number to `I64`.
    pub fn sext(self) -> Val<'c> {
        self.convert(ConvertOp::SExt, Type::I64)
    }

    /// Truncates a number to `I32`.
    pub fn truncate(self) -> Val<'c> {
        self.convert(ConvertOp::Truncate, Type::I32)
    }

    /// Converts an address to a pointer.
    pub fn pointer(self) -> Val<'c> {
        self.convert(ConvertOp::IntToPtr, Type::Ptr)
    }

    /// Converts a pointer to its address.
    pub fn address(self) -> Val<'c> {
        self.convert(ConvertOp::PtrToInt, Type::I64)
    }

    /// Loads from `offset` bytes after this pointer.
    pub fn load(self, ty: Type, offset: i32) -> Val<'c> {
        self.emitter.value(|b| b.load(ty, self.value, offset, MemFlags::ALIGNED))
    }

    /// Loads a pointer from this one with acquire order: see [`FunctionBuilder::load_acquire`].
    pub fn load_acquire(self) -> Val<'c> {
        self.emitter.value(|b| b.load_acquire(self.value))
    }

    /// Atomically replaces the pointer at this one if it equals `expected`; returns the previous pointer.
    pub fn compare_exchange(self, expected: Val<'c>, new: Val<'c>) -> Val<'c> {
        self.emitter.value(|b| b.compare_exchange(self.value, expected.value, new.value))
    }

    /// Stores a value `offset` bytes after this pointer.
    pub fn store(self, offset: i32, value: Val<'c>) {
        self.emitter.with(|b| b.store(value.value, self.value, offset, MemFlags::ALIGNED));
    }

    /// The address of element `index` of the array at this pointer.
    pub fn element(self, index: Val<'c>, ty: Type) -> Val<'c> {
        self.emitter.value(|b| b.element(self.value, index.value, ty))
    }
}

impl<'c> Var<'c> {
    /// The variable's address.
    pub fn address(self) -> Val<'c> {
        self.address
    }

    /// Reads the variable.
    pub fn get(self) -> Val<'c> {
        self.address.load(self.ty, 0)
    }

    /// Writes the variable.
    pub fn set(self, value: Val<'c>) {
        self.address.store(0, value);
    }

    /// Adds bytes to a pointer, or a number to an integer.
    pub fn advance(self, by: impl Operand<'c>) {
        // emit the amount first, in the order in which it is computed
        let by = by.bytes(self.address.emitter);
        self.set(self.get() + by);
    }
}
