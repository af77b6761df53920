//! Instructions and terminators, with the exact semantics that the interpreter and every backend implement.
//!
//! No instruction has undefined behaviour, except for memory. An access to invalid memory, and a call that breaks the
//! callee's contract, are bugs of the lowering.

use cranelift_entity::entity_impl;

use super::types::Type;

/// An SSA value, printed `v3`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(u32);
entity_impl!(Value, "v");

/// A basic block, printed `block1`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block(u32);
entity_impl!(Block, "block");

/// An instruction inside a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Inst(u32);
entity_impl!(Inst, "inst");

/// A slot in the function's frame, printed `slot0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackSlot(u32);
entity_impl!(StackSlot, "slot");

/// A signature for indirect calls, printed `sig0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SigRef(u32);
entity_impl!(SigRef, "sig");

/// A function of the module, imported or defined, printed `fn0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FuncRef(u32);
entity_impl!(FuncRef, "fn");

/// Static data of the module, printed `data0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DataRef(u32);
entity_impl!(DataRef, "data");

/// A source location of the module, printed `loc0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocationRef(u32);
entity_impl!(LocationRef, "loc");

/// Operations with one operand; the result has the operand's type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnaryOp {
    /// Two's complement negation, wrapping. Integers.
    Neg,
    /// Every bit inverted. Integers and `Bool`.
    Not,
    /// The sign bit flipped, NaN included. Floats.
    FNeg,
    /// The sign bit cleared. Floats.
    FAbs,
    /// Square root, correctly rounded. Floats.
    Sqrt,
    /// Towards minus infinity. Floats.
    Floor,
    /// Towards plus infinity. Floats.
    Ceil,
    /// Towards zero. Floats.
    Trunc,
    /// To the nearest integer, ties to even. Floats.
    Nearest,
}

/// Operations with two operands of one type; the result has that type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BinaryOp {
    /// Wrapping sum. Integers.
    Add,
    /// Wrapping difference. Integers.
    Sub,
    /// Wrapping product. Integers.
    Mul,
    /// Upper half of the signed product. `I64`.
    SMulHi,
    /// Upper half of the unsigned product. `I64`.
    UMulHi,
    /// Signed quotient, towards zero. Integers. A zero divisor, or the minimum divided by -1, traps; the code that
    /// emits it must exclude both.
    SDiv,
    /// Unsigned quotient. A zero divisor traps.
    UDiv,
    /// Signed remainder with the dividend's sign. Traps in the same cases as `SDiv`.
    SRem,
    /// Unsigned remainder. A zero divisor traps.
    URem,
    /// Bitwise and. Integers and `Bool`.
    And,
    /// Bitwise or. Integers and `Bool`.
    Or,
    /// Bitwise exclusive or. Integers and `Bool`.
    Xor,
    /// Left shift; the amount counts modulo the width. Integers.
    Shl,
    /// Logical right shift; the amount counts modulo the width. Integers.
    LShr,
    /// Arithmetic right shift; the amount counts modulo the width. Integers.
    AShr,
    /// Signed minimum. Integers.
    SMin,
    /// Signed maximum. Integers.
    SMax,
    /// Unsigned minimum. Integers.
    UMin,
    /// Unsigned maximum. Integers.
    UMax,
    /// IEEE sum. Floats.
    FAdd,
    /// IEEE difference. Floats.
    FSub,
    /// IEEE product. Floats.
    FMul,
    /// IEEE quotient. Floats.
    FDiv,
    /// IEEE 754-2019 `minimum`: NaN if either is, and -0 < +0. Floats.
    FMin,
    /// IEEE 754-2019 `maximum`: NaN if either is, and -0 < +0. Floats.
    FMax,
}

/// Conditions of an integer comparison. `Eq` and `Ne` also compare pointers and `Bool`; the unsigned conditions also
/// compare pointers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // the names are standard
pub enum IntCC {
    Eq,
    Ne,
    SLt,
    SLe,
    SGt,
    SGe,
    ULt,
    ULe,
    UGt,
    UGe,
}

/// Conditions of a float comparison, like C's operators: with a NaN only `Ne` holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // the names are standard
pub enum FloatCC {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// Conversions; the instruction names the result's type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ConvertOp {
    /// Sign extension to a wider integer.
    SExt,
    /// Zero extension to a wider integer; from `Bool`, 0 or 1 of any integer type.
    ZExt,
    /// The low bits, as a narrower integer.
    Truncate,
    /// Signed integer to float, rounded to nearest even. From `I32` or `I64`.
    SIntToFloat,
    /// Unsigned integer to float, rounded to nearest even. From `I32` or `I64`.
    UIntToFloat,
    /// Float to signed `I32` or `I64`, towards zero, saturating; NaN gives 0.
    FloatToSInt,
    /// Float to unsigned `I32` or `I64`, towards zero, saturating; NaN gives 0.
    FloatToUInt,
    /// `F32` to `F64`, exact.
    FPromote,
    /// `F64` to `F32`, rounded to nearest even.
    FDemote,
    /// The same bits in another type of the same size: `I32`/`F32`, `I64`/`F64`.
    Bitcast,
    /// The address as `I64`.
    PtrToInt,
    /// An `I64` as an address.
    IntToPtr,
}

/// Guarantees about a memory access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MemFlags {
    /// The address is a multiple of the type's size.
    pub aligned: bool,
    /// The memory isn't written while the function runs, so equal loads may be merged.
    pub readonly: bool,
}

impl MemFlags {
    /// An aligned access to memory that may change.
    pub const ALIGNED: MemFlags = MemFlags { aligned: true, readonly: false };
    /// An aligned load of memory that doesn't change during the call.
    pub const READONLY: MemFlags = MemFlags { aligned: true, readonly: true };
    /// An access at any address.
    pub const UNALIGNED: MemFlags = MemFlags { aligned: false, readonly: false };
}

/// The maximum total number of bytes that [`Op::SameBytes`] compares.
pub const MAX_SAME_BYTES: u32 = 512;

/// An instruction's operation. It has at most one result.
#[derive(Clone, PartialEq, Debug)]
pub enum Op {
    /// An integer constant, the low bits of `value`.
    IntConst {
        /// An integer type.
        ty: Type,
        /// The value, sign-extended to 64 bits.
        value: i64,
    },
    /// A float constant by its bits.
    FloatConst {
        /// A float type.
        ty: Type,
        /// IEEE bits; for `F32` the low 32.
        bits: u64,
    },
    /// A truth value.
    BoolConst(bool),
    /// An absolute address: null, or an address in this process.
    PtrConst(u64),
    /// A [`UnaryOp`].
    Unary(UnaryOp, Value),
    /// A [`BinaryOp`].
    Binary(BinaryOp, Value, Value),
    /// An integer, pointer or `Bool` comparison; the result is `Bool`.
    ICmp(IntCC, Value, Value),
    /// A float comparison; the result is `Bool`.
    FCmp(FloatCC, Value, Value),
    /// The first value if the condition holds, else the second; both are evaluated.
    Select(Value, Value, Value),
    /// A [`ConvertOp`] to the type.
    Convert(ConvertOp, Type, Value),
    /// Reads a `ty` at `ptr + offset` bytes.
    Load {
        /// Any type but `Bool`.
        ty: Type,
        /// The base address.
        ptr: Value,
        /// The offset added to the base, in bytes.
        offset: i32,
        /// Guarantees about the access.
        flags: MemFlags,
    },
    /// Writes `value` at `ptr + offset` bytes; no result.
    Store {
        /// Of any type but `Bool`.
        value: Value,
        /// The base address.
        ptr: Value,
        /// The offset added to the base, in bytes.
        offset: i32,
        /// Guarantees about the access.
        flags: MemFlags,
    },
    /// A pointer plus an `I64` of bytes, wrapping.
    PtrAdd(Value, Value),
    /// The address of element `index` (an `I64`) of an array of `ty` at `base`.
    Element {
        /// The address of element 0.
        base: Value,
        /// Index, may be negative.
        index: Value,
        /// The element's type; its size is the step.
        ty: Type,
    },
    /// Whether that many bytes are equal at both addresses of each pair. The number is a multiple of 8, and at most
    /// [`MAX_SAME_BYTES`] for all pairs together. All addresses are multiples of 8. The result is `Bool`.
    SameBytes(Vec<(Value, Value)>, u32),
    /// The address of a stack slot plus a number of bytes.
    StackAddr(StackSlot, u32),
    /// The address of static data plus a number of bytes.
    DataAddr(DataRef, u32),
    /// The address of a function, defined in the module or imported.
    FuncAddr(FuncRef),
    /// Atomically loads the `Ptr` at an address that is a multiple of 8, with *acquire* order: before all reads that
    /// follow it.
    LoadAcquire(Value),
    /// Atomically adds an `I64` to the `I64` at an address that is a multiple of 8, wrapping, with sequentially
    /// consistent order. The result is the previous value.
    AtomicAdd(Value, Value),
    /// Atomically replaces the `Ptr` at an address (a multiple of 8) with the third operand if it equals the second,
    /// with sequentially consistent order. The result is the previous pointer.
    CompareExchange(Value, Value, Value),
    /// A direct call; its result is the callee's result.
    Call(FuncRef, Vec<Value>),
    /// A call through a pointer; its result is that of the signature.
    CallIndirect(SigRef, Value, Vec<Value>),
}

/// A branch target with the values of its block parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct BlockCall {
    /// The target.
    pub block: Block,
    /// The arguments: a value for each parameter of the block.
    pub args: Vec<Value>,
}

/// The likely successor of a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Hint {
    /// Nothing is known.
    #[default]
    None,
    /// The condition usually holds.
    Likely,
    /// The condition rarely holds.
    Unlikely,
}

/// The terminator of a block.
#[derive(Clone, PartialEq, Debug)]
pub enum Terminator {
    /// Continues in another block.
    Jump(BlockCall),
    /// Continues at `then` if the `Bool` holds, else at `otherwise`.
    Branch {
        /// A `Bool`.
        cond: Value,
        /// The target if the condition holds.
        then: BlockCall,
        /// The target if the condition doesn't hold.
        otherwise: BlockCall,
        /// The likely successor.
        hint: Hint,
    },
    /// Leaves the function with its result, if it has one.
    Return(Option<Value>),
}

/// Calls `$f` with a reference to every operand of `$op`, in order. The references are mutable if `$op` is.
macro_rules! for_each_operand {
    ($op:expr, $f:expr) => {{
        let mut f = $f;
        match $op {
            Op::IntConst { .. }
            | Op::FloatConst { .. }
            | Op::BoolConst(_)
            | Op::PtrConst(_)
            | Op::StackAddr(..)
            | Op::DataAddr(..)
            | Op::FuncAddr(_) => {}
            Op::Unary(_, a) | Op::Convert(_, _, a) | Op::Load { ptr: a, .. } | Op::LoadAcquire(a) => f(a),
            Op::Binary(_, a, b)
            | Op::ICmp(_, a, b)
            | Op::FCmp(_, a, b)
            | Op::PtrAdd(a, b)
            | Op::AtomicAdd(a, b)
            | Op::Store { value: a, ptr: b, .. }
            | Op::Element { base: a, index: b, .. } => {
                f(a);
                f(b);
            }
            Op::Select(a, b, c) | Op::CompareExchange(a, b, c) => {
                f(a);
                f(b);
                f(c);
            }
            Op::SameBytes(pairs, _) => {
                for (a, b) in pairs {
                    f(a);
                    f(b);
                }
            }
            Op::Call(_, args) => {
                for arg in args {
                    f(arg);
                }
            }
            Op::CallIndirect(_, callee, args) => {
                f(callee);
                for arg in args {
                    f(arg);
                }
            }
        }
    }};
}

impl Op {
    /// Calls `f` with every operand, in order.
    pub fn for_each_operand(&self, mut f: impl FnMut(Value)) {
        for_each_operand!(self, |value: &Value| f(*value));
    }

    /// Calls `f` with a mutable reference to every operand, in order.
    pub fn for_each_operand_mut(&mut self, f: impl FnMut(&mut Value)) {
        for_each_operand!(self, f);
    }
}

impl Terminator {
    /// The targets, in order.
    pub fn targets(&self) -> impl Iterator<Item = &BlockCall> {
        let (first, second) = match self {
            Terminator::Jump(to) => (Some(to), None),
            Terminator::Branch { then, otherwise, .. } => (Some(then), Some(otherwise)),
            Terminator::Return(_) => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// The targets, in order, for changes.
    pub fn targets_mut(&mut self) -> impl Iterator<Item = &mut BlockCall> {
        let (first, second) = match self {
            Terminator::Jump(to) => (Some(to), None),
            Terminator::Branch { then, otherwise, .. } => (Some(then), Some(otherwise)),
            Terminator::Return(_) => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// The operands that are not arguments of a target: a condition or a result.
    pub fn operand(&self) -> Option<Value> {
        match self {
            Terminator::Jump(_) => None,
            Terminator::Branch { cond, .. } => Some(*cond),
            Terminator::Return(value) => *value,
        }
    }
}
