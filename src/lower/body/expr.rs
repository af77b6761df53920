//! Values of a body: constants and operands, arithmetic, comparisons, conversions and math functions.

use std::fmt;

use super::arena::Arena;
use super::function::BodyLowerer;
use super::life::{Ended, Life};
use super::record::Recorder;
use super::scope::Scope;
use super::types::ir_type;
use crate::host::tree::UnaryOp as TreeOp;
use crate::ir;
use crate::ir::{BinaryOp, ConvertOp, FloatCC, IntCC, UnaryOp, Value};
use crate::lower::unit::import_conflict;
use crate::spec::{ScalarKind, ScalarType};

/// A value of a known scalar type in a body.
///
/// You can use the operators `+ - * / % & | ^ << >>` and unary `-` and `!`. On integers `/` rounds towards zero, and
/// `%` is its remainder; [`floor_div`](Self::floor_div) rounds down. The other operand is an expression of the
/// same type, or a plain Rust number that takes the expression's type: `x * 2.0`, `i + n` for a `usize`. A number on
/// the left is an `i64`, an `f64` or a literal (`2.0 * x`); write `Operand::from(n) * x` for any other type. A number
/// that the type can't hold is an error in the body.
///
/// You can use an expression in the block that created it and in nested blocks. You can't use an expression created in
/// a loop or conditional after its end.
#[derive(Clone, Copy)]
pub struct Expr<'b> {
    pub(super) body: &'b dyn Ops,
    pub(super) value: Value,
    ty: ScalarType,
    life: Life,
    /// Whether this is a placeholder after an error. The type of the intended value is unknown, so any type is
    /// accepted.
    missing: bool,
}

/// The operations of a body that an [`Expr`] uses, without the body's lifetime.
pub(super) trait Ops {
    /// Emits code: runs `f` once.
    fn run(&self, f: &mut dyn FnMut(&mut BodyLowerer<'_>));
    /// Records an error in the body.
    fn note(&self, operation: &str, problem: String);
    /// The innermost open block.
    fn scope(&self) -> Scope;
    /// Whether a block is still open.
    fn is_open(&self, scope: Scope) -> bool;
    /// The arena for data that values refer to.
    fn arena(&self) -> &Arena;
    /// The recorder, if the operation is to be recorded.
    fn recorder(&self) -> Option<&Recorder>;
}

impl dyn Ops + '_ {
    /// Emits code that computes a value.
    pub(super) fn value(&self, f: impl FnOnce(&mut BodyLowerer<'_>) -> Value) -> Value {
        // `run` always calls `f`, so the fallback value (the function's first parameter) is never used
        self.emit(|l| Some(f(l))).unwrap_or(Value::from_u32(0))
    }

    /// Emits code.
    pub(super) fn emit<R: Default>(&self, f: impl FnOnce(&mut BodyLowerer<'_>) -> R) -> R {
        let mut f = Some(f);
        let mut result = R::default();
        self.run(&mut |l| {
            if let Some(f) = f.take() {
                result = f(l);
            }
        });
        result
    }

    /// Zero of a type, the placeholder for a value after an error.
    pub(super) fn zero<'b>(&'b self, ty: ScalarType) -> Expr<'b> {
        let value = self.value(|l| match ty.kind() {
            ScalarKind::Bool => l.b.bconst(false),
            ScalarKind::Float32 => l.b.f32(0.0),
            ScalarKind::Float64 => l.b.f64(0.0),
            ScalarKind::Handle => l.b.ptr_const(0),
            ScalarKind::Signed | ScalarKind::Unsigned | ScalarKind::Half(_) => l.b.iconst(ir_type(ty), 0),
        });
        Expr::new(self, value, ty)
    }

    /// Placeholder for a value of unknown type after an error.
    pub(super) fn missing<'b>(&'b self) -> Expr<'b> {
        Expr { missing: true, ..self.zero(ScalarType::Int64) }
    }

    /// Converts an operand to a value of that type. If the operand has another type, or is a number that the type can't
    /// hold, records an error and returns zero.
    pub(super) fn coerce<'b>(&'b self, operation: &str, ty: ScalarType, other: Operand<'b>) -> Expr<'b> {
        self.try_coerce(operation, ty, other).unwrap_or_else(|problem| {
            self.note(operation, problem);
            self.zero(ty)
        })
    }

    /// Converts an operand to a value of that type, or says why it can't.
    pub(super) fn try_coerce<'b>(
        &'b self,
        operation: &str,
        ty: ScalarType,
        other: Operand<'b>,
    ) -> Result<Expr<'b>, String> {
        use ScalarKind::{Bool, Float32, Float64, Half, Handle, Signed, Unsigned};
        let wrong = |found: &str| Err(format!("operands are {ty} and {found}; cast one"));
        let constant = match (other, ty.kind()) {
            (Operand::Expr(e), _) if e.missing => return Ok(self.zero(ty)),
            (Operand::Expr(e), _) if e.ty == ty => return Ok(e.used(operation)),
            (Operand::Expr(e), _) => return wrong(e.used(operation).ty.name()),
            (Operand::Int(v), Float32) => self.value(|l| l.b.f32(v as f32)),
            (Operand::Int(v), Float64) => self.value(|l| l.b.f64(v as f64)),
            (Operand::Int(v), Signed | Unsigned) => {
                let (min, greatest) = int_range(ty);
                if !(min..=greatest).contains(&v) {
                    return Err(format!("{v} is out of the range of {ty}, which is {min} to {greatest}"));
                }
                self.value(|l| l.b.iconst(ir_type(ty), v as i64))
            }
            (Operand::Int(_), Half(_) | Bool | Handle) => return wrong("an integer"),
            (Operand::Float(v), Float32) => {
                if v.is_finite() && (v as f32).is_infinite() {
                    return Err(format!("{v:e} is out of the range of {ty}"));
                }
                self.value(|l| l.b.f32(v as f32))
            }
            (Operand::Float(v), Float64) => self.value(|l| l.b.f64(v)),
            (Operand::Float(_), Signed | Unsigned | Half(_) | Bool | Handle) => return wrong("a float"),
            (Operand::Bool(v), Bool) => self.value(|l| l.b.bconst(v)),
            (Operand::Bool(_), Signed | Unsigned | Half(_) | Float32 | Float64 | Handle) => {
                return wrong("a truth value");
            }
        };
        Ok(Expr::new(self, constant, ty))
    }
}

/// The minimum and maximum of an integer type.
pub(super) fn int_range(ty: ScalarType) -> (i128, i128) {
    match ty.is_signed_int() {
        true => (-(1 << (ty.bits() - 1)), (1 << (ty.bits() - 1)) - 1),
        false => (0, (1 << ty.bits()) - 1),
    }
}

/// An operand of an operation: an expression, or a number that takes the other operand's type.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Operand<'b> {
    /// A value.
    Expr(Expr<'b>),
    /// A whole number.
    Int(i128),
    /// A number for a float type.
    Float(f64),
    /// A truth value.
    Bool(bool),
}

impl<'b> From<Expr<'b>> for Operand<'b> {
    fn from(expr: Expr<'b>) -> Self {
        Operand::Expr(expr)
    }
}

macro_rules! operand_from {
    ($($variant:ident($as:ty): $($from:ty),*;)*) => {$($(
        impl From<$from> for Operand<'_> {
            fn from(value: $from) -> Self {
                Operand::$variant(<$as>::from(value))
            }
        }
    )*)*};
}
operand_from! {
    Int(i128): i8, i16, i32, i64, u8, u16, u32, u64;
    Float(f64): f32, f64;
    Bool(bool): bool;
}

impl From<usize> for Operand<'_> {
    fn from(value: usize) -> Self {
        Operand::Int(value as i128)
    }
}

impl From<isize> for Operand<'_> {
    fn from(value: isize) -> Self {
        Operand::Int(value as i128)
    }
}

impl fmt::Debug for Expr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expr({}: {})", self.value, self.ty)
    }
}

#[expect(clippy::return_self_not_must_use, reason = "a body may leave a value unused")]
impl<'b> Expr<'b> {
    /// A value that the current code has just computed.
    pub(super) fn new(body: &'b dyn Ops, value: Value, ty: ScalarType) -> Self {
        Expr::known_in(body, value, ty, body.life())
    }

    /// A value available from the start of the body: a parameter, a size, a stride.
    pub(super) fn of_params(body: &'b dyn Ops, value: Value, ty: ScalarType) -> Self {
        Expr::known_in(body, value, ty, Life::BODY)
    }

    /// A value with that life. A pointer refers to memory of the owner, if there is one. Any other value is a copy, so
    /// it doesn't depend on the owner.
    pub(super) fn known_in(body: &'b dyn Ops, value: Value, ty: ScalarType, life: Life) -> Self {
        let part_of = life.part_of.filter(|_| ty == ScalarType::Handle);
        Expr { body, value, ty, life: Life { part_of, ..life }, missing: false }
    }

    /// Marks this value as missing if the other one is.
    pub(super) fn like(self, other: Expr<'b>) -> Self {
        Expr { missing: other.missing, ..self }
    }

    /// Whether this is a placeholder after an error.
    pub(in crate::lower) fn is_missing(self) -> bool {
        self.missing
    }

    /// The life of a value computed here from this pointer.
    pub(super) fn life_beside(self) -> Life {
        Life { part_of: self.life.part_of, ..self.body.life() }
    }

    /// The expression's type.
    pub fn ty(self) -> ScalarType {
        self.ty
    }

    /// The expression as an operand. Records an error if its block has ended, because its value may never have been
    /// computed.
    pub(super) fn used(self, operation: &str) -> Self {
        if let Some(ended) = self.ended() {
            const BLOCK: &str = "an operand was made inside of a loop or conditional that has ended; carry it out by \
                `fold`, `while_loop` or `if_else_value`";
            self.body.note(operation, ended.problem(BLOCK));
        }
        self
    }

    /// Why it can't be used here; `None` if it can.
    pub(super) fn ended(self) -> Option<Ended> {
        self.body.use_of(self.life)
    }

    fn with(self, ty: ScalarType, f: impl FnOnce(&mut ir::FunctionBuilder<'_>) -> Value) -> Expr<'b> {
        Expr::new(self.body, self.body.value(|l| f(&mut l.b)), ty)
    }

    /// Converts the operand to this expression's type; records an error if it can't.
    pub(super) fn coerce(self, operation: &str, other: Operand<'b>) -> Expr<'b> {
        self.used(operation);
        if self.missing {
            return self;
        }
        self.body.coerce(operation, self.ty, other)
    }

    /// Converts a number on the left of an operator to the type of the right operand.
    pub(in crate::lower) fn left(self, operation: &str, number: Operand<'b>) -> Expr<'b> {
        if self.missing {
            return self;
        }
        let value = self.body.coerce(operation, self.ty, number);
        match number {
            Operand::Expr(_) => value,
            _ => value.recorded(|recorder| recorder.constant_of(value)),
        }
    }

    pub(super) fn unsupported(self, operation: &str) -> Expr<'b> {
        if self.missing {
            return self;
        }
        self.body.note(operation, format!("not defined for {}", self.ty));
        self
    }

    fn binary(self, operation: &str, other: Operand<'b>, choose: impl Fn(ScalarType) -> Option<BinaryOp>) -> Expr<'b> {
        let other = self.coerce(operation, other);
        match choose(self.ty) {
            _ if self.missing => self,
            Some(op) => self
                .with(self.ty, |b| b.binary(op, self.value, other.value))
                .recorded(|recorder| recorder.numbers(operation, &[self, other])),
            None => self.unsupported(operation),
        }
    }

    pub(super) fn add_op(self, other: Operand<'b>) -> Expr<'b> {
        self.binary("add", other, |ty| by_kind(ty, BinaryOp::Add, BinaryOp::Add, BinaryOp::FAdd))
    }

    pub(super) fn sub_op(self, other: Operand<'b>) -> Expr<'b> {
        self.binary("sub", other, |ty| by_kind(ty, BinaryOp::Sub, BinaryOp::Sub, BinaryOp::FSub))
    }

    pub(super) fn mul_op(self, other: Operand<'b>) -> Expr<'b> {
        self.binary("mul", other, |ty| by_kind(ty, BinaryOp::Mul, BinaryOp::Mul, BinaryOp::FMul))
    }

    /// Integer division rounds towards zero, and a zero divisor raises a `ZeroDivisionError`.
    pub(super) fn div_op(self, other: Operand<'b>) -> Expr<'b> {
        if self.ty.is_int() {
            return self.integer_division("div", other, BinaryOp::SDiv, BinaryOp::UDiv);
        }
        self.binary("div", other, |ty| ty.is_float().then_some(BinaryOp::FDiv))
    }

    /// The remainder has the dividend's sign. Floats use libm's `fmod`.
    pub(super) fn rem_op(self, other: Operand<'b>) -> Expr<'b> {
        if self.ty.is_int() {
            return self.integer_division("rem", other, BinaryOp::SRem, BinaryOp::URem);
        }
        let divisor = self.coerce("rem", other);
        match self.ty.is_float() {
            true => self.libm("fmod", &[self, divisor]),
            false => self.unsupported("rem"),
        }
    }

    pub(super) fn neg_op(self) -> Expr<'b> {
        self.used("neg");
        match self.ty.kind() {
            _ if self.missing => self,
            ScalarKind::Signed | ScalarKind::Unsigned => self.negated(UnaryOp::Neg),
            ScalarKind::Half(_) | ScalarKind::Float32 | ScalarKind::Float64 => self.negated(UnaryOp::FNeg),
            ScalarKind::Bool | ScalarKind::Handle => self.unsupported("neg"),
        }
    }

    fn negated(self, op: UnaryOp) -> Expr<'b> {
        self.with(self.ty, |b| b.unary(op, self.value)).recorded(|recorder| recorder.unary(TreeOp::Neg, self))
    }

    pub(super) fn not_op(self) -> Expr<'b> {
        self.used("not");
        let op = match self.ty.kind() {
            _ if self.missing => return self,
            ScalarKind::Signed | ScalarKind::Unsigned => TreeOp::Invert,
            ScalarKind::Bool => TreeOp::Not,
            ScalarKind::Half(_) | ScalarKind::Float32 | ScalarKind::Float64 | ScalarKind::Handle => {
                return self.unsupported("not");
            }
        };
        self.with(self.ty, |b| b.unary(UnaryOp::Not, self.value)).recorded(|recorder| recorder.unary(op, self))
    }

    pub(super) fn bit_op(self, operation: &str, other: Operand<'b>, op: BinaryOp) -> Expr<'b> {
        self.binary(operation, other, |ty| match ty.kind() {
            ScalarKind::Signed | ScalarKind::Unsigned | ScalarKind::Bool => Some(op),
            ScalarKind::Half(_) | ScalarKind::Float32 | ScalarKind::Float64 | ScalarKind::Handle => None,
        })
    }

    pub(super) fn shl_op(self, other: Operand<'b>) -> Expr<'b> {
        self.binary("shl", other, |ty| ty.is_int().then_some(BinaryOp::Shl))
    }

    /// Arithmetic shift for signed integers, logical shift for unsigned integers.
    pub(super) fn shr_op(self, other: Operand<'b>) -> Expr<'b> {
        self.binary("shr", other, |ty| match ty.kind() {
            ScalarKind::Signed => Some(BinaryOp::AShr),
            ScalarKind::Unsigned => Some(BinaryOp::LShr),
            ScalarKind::Half(_) | ScalarKind::Float32 | ScalarKind::Float64 | ScalarKind::Bool | ScalarKind::Handle => {
                None
            }
        })
    }

    /// The smaller of two values; NaN if either is NaN.
    pub fn min(self, other: impl Into<Operand<'b>>) -> Expr<'b> {
        self.binary("min", other.into(), |ty| by_kind(ty, BinaryOp::SMin, BinaryOp::UMin, BinaryOp::FMin))
    }

    /// The larger of two values; NaN if either is NaN.
    pub fn max(self, other: impl Into<Operand<'b>>) -> Expr<'b> {
        self.binary("max", other.into(), |ty| by_kind(ty, BinaryOp::SMax, BinaryOp::UMax, BinaryOp::FMax))
    }

    fn compare(self, operation: &str, other: Operand<'b>, signed: IntCC, unsigned: IntCC, float: FloatCC) -> Expr<'b> {
        let other = self.coerce(operation, other);
        let (a, b) = (self.value, other.value);
        let equality = matches!(signed, IntCC::Eq | IntCC::Ne);
        let value = match self.ty.kind() {
            ScalarKind::Half(_) | ScalarKind::Float32 | ScalarKind::Float64 => {
                self.with(ScalarType::Bool, |f| f.fcmp(float, a, b))
            }
            ScalarKind::Signed => self.with(ScalarType::Bool, |f| f.icmp(signed, a, b)),
            ScalarKind::Bool if !equality => {
                self.unsupported(operation);
                self.with(ScalarType::Bool, |f| f.bconst(false))
            }
            ScalarKind::Unsigned | ScalarKind::Bool | ScalarKind::Handle => {
                self.with(ScalarType::Bool, |f| f.icmp(unsigned, a, b))
            }
        };
        value.recorded(|recorder| recorder.compare(operation, self, other))
    }

    /// `self == other`
    pub fn eq(self, other: impl Into<Operand<'b>>) -> Expr<'b> {
        self.compare("eq", other.into(), IntCC::Eq, IntCC::Eq, FloatCC::Eq)
    }

    /// `self != other`
    pub fn ne(self, other: impl Into<Operand<'b>>) -> Expr<'b> {
        self.compare("ne", other.into(), IntCC::Ne, IntCC::Ne, FloatCC::Ne)
    }

    /// `self < other`
    pub fn lt(self, other: impl Into<Operand<'b>>) -> Expr<'b> {
        self.compare("lt", other.into(), IntCC::SLt, IntCC::ULt, FloatCC::Lt)
    }

    /// `self <= other`
    pub fn le(self, other: impl Into<Operand<'b>>) -> Expr<'b> {
        self.compare("le", other.into(), IntCC::SLe, IntCC::ULe, FloatCC::Le)
    }

    /// `self > other`
    pub fn gt(self, other: impl Into<Operand<'b>>) -> Expr<'b> {
        self.compare("gt", other.into(), IntCC::SGt, IntCC::UGt, FloatCC::Gt)
    }

    /// `self >= other`
    pub fn ge(self, other: impl Into<Operand<'b>>) -> Expr<'b> {
        self.compare("ge", other.into(), IntCC::SGe, IntCC::UGe, FloatCC::Ge)
    }

    /// `then` if this truth value holds, otherwise `otherwise`; both are computed.
    pub fn select(self, then: Expr<'b>, otherwise: impl Into<Operand<'b>>) -> Expr<'b> {
        self.used("select");
        let otherwise = then.coerce("select", otherwise.into());
        match self.ty {
            _ if self.missing || then.missing => then,
            ScalarType::Bool => then
                .with(then.ty, |b| b.select(self.value, then.value, otherwise.value))
                .recorded(|recorder| recorder.select(self, then, otherwise)),
            _ => {
                self.body.note("select", format!("the condition is {}, expected bool", self.ty));
                then
            }
        }
    }

    /// Converts the value to another type. Integers wrap, floats round towards zero and saturate when cast to integers,
    /// and a cast to `bool` tests for a value other than 0.
    pub fn cast(self, to: ScalarType) -> Expr<'b> {
        let value = self.used("cast").converted(to);
        if self.ty == to { value } else { value.recorded(|recorder| recorder.cast(self, to)) }
    }

    /// [`cast`](Self::cast) of an expression that has been checked with `used`.
    pub(super) fn converted(self, to: ScalarType) -> Expr<'b> {
        let from = self.ty;
        if self.missing {
            return self.body.zero(to);
        }
        if from == to {
            return self;
        }
        // a pointer casts like a 64-bit integer; a cast to `bool` tests for NULL
        let whole = |ty: ScalarType| ty.is_int() && ty.bits() == 64;
        let defined = match (from, to) {
            (ScalarType::Handle, to) => whole(to) || to == ScalarType::Bool,
            (from, ScalarType::Handle) => whole(from),
            _ => true,
        };
        if !defined {
            self.body.note("cast", format!("{from} to {to} is not defined; go by int64"));
            return self.body.zero(to);
        }
        let v = self.value;
        self.with(to, |b| match to.kind() {
            ScalarKind::Bool => match from.kind() {
                ScalarKind::Half(_) | ScalarKind::Float32 | ScalarKind::Float64 => {
                    let zero = if from == ScalarType::Float32 { b.f32(0.0) } else { b.f64(0.0) };
                    b.fcmp(FloatCC::Ne, v, zero)
                }
                ScalarKind::Signed | ScalarKind::Unsigned | ScalarKind::Bool | ScalarKind::Handle => {
                    b.icmp_imm(IntCC::Ne, v, 0)
                }
            },
            ScalarKind::Handle => b.convert(ConvertOp::IntToPtr, ir::Type::Ptr, v),
            ScalarKind::Half(_) | ScalarKind::Float32 | ScalarKind::Float64 => to_float(b, v, from, to),
            ScalarKind::Signed | ScalarKind::Unsigned => match from.kind() {
                ScalarKind::Signed | ScalarKind::Unsigned | ScalarKind::Bool => resize(b, v, from, to),
                ScalarKind::Half(_) | ScalarKind::Float32 | ScalarKind::Float64 => to_int(b, v, to),
                ScalarKind::Handle => b.convert(ConvertOp::PtrToInt, ir::Type::I64, v),
            },
        })
    }

    /// Square root, correctly rounded.
    pub fn sqrt(self) -> Expr<'b> {
        self.float_unary("sqrt", UnaryOp::Sqrt)
    }

    /// The absolute value.
    pub fn abs(self) -> Expr<'b> {
        match self.ty {
            ty if ty.is_signed_int() => {
                let larger = |b: &mut ir::FunctionBuilder<'_>| {
                    let negated = b.unary(UnaryOp::Neg, self.value);
                    b.binary(BinaryOp::SMax, self.value, negated)
                };
                self.used("abs").with(ty, larger).recorded(|recorder| recorder.numbers("abs", &[self]))
            }
            ty if ty.is_int() => self.used("abs"),
            _ => self.float_unary("abs", UnaryOp::FAbs),
        }
    }

    /// The value rounded towards minus infinity.
    pub fn floor(self) -> Expr<'b> {
        self.float_unary("floor", UnaryOp::Floor)
    }

    /// The value rounded towards plus infinity.
    pub fn ceil(self) -> Expr<'b> {
        self.float_unary("ceil", UnaryOp::Ceil)
    }

    /// The value rounded towards zero.
    pub fn trunc(self) -> Expr<'b> {
        self.float_unary("trunc", UnaryOp::Trunc)
    }

    /// The value rounded to the nearest integer, ties to even.
    pub fn round_ties_even(self) -> Expr<'b> {
        self.float_unary("round_ties_even", UnaryOp::Nearest)
    }

    /// The value rounded to the nearest integer, ties away from zero: C's and Rust's `round`.
    pub fn round(self) -> Expr<'b> {
        self.used("round");
        let constant = |b: &mut ir::FunctionBuilder<'_>, value: f32| match self.ty {
            ScalarType::Float32 => b.f32(value),
            _ => b.f64(f64::from(value)),
        };
        if !self.ty.is_float() {
            return self.unsupported("round");
        }
        self.with(self.ty, |b| {
            // the fraction is exact, and so is the next integer if the fraction isn't 0
            let whole = b.unary(UnaryOp::Trunc, self.value);
            let rest = b.binary(BinaryOp::FSub, self.value, whole);
            let rest = b.unary(UnaryOp::FAbs, rest);
            let [zero, half, one, minus_one] = [0.0, 0.5, 1.0, -1.0].map(|value| constant(b, value));
            let negative = b.fcmp(FloatCC::Lt, self.value, zero);
            let step = b.select(negative, minus_one, one);
            let next = b.binary(BinaryOp::FAdd, whole, step);
            let away = b.fcmp(FloatCC::Ge, rest, half);
            b.select(away, next, whole)
        })
        .recorded(|recorder| recorder.numbers("round", &[self]))
    }

    fn float_unary(self, operation: &str, op: UnaryOp) -> Expr<'b> {
        self.used(operation);
        match self.ty.is_float() {
            true => self
                .with(self.ty, |b| b.unary(op, self.value))
                .recorded(|recorder| recorder.numbers(operation, &[self])),
            false => self.unsupported(operation),
        }
    }

    /// The upper half of the double-width product. Defined for `int64` and `uint64`.
    pub fn mul_hi(self, other: impl Into<Operand<'b>>) -> Expr<'b> {
        self.binary("mul_hi", other.into(), |ty| match ty {
            ScalarType::Int64 => Some(BinaryOp::SMulHi),
            ScalarType::UInt64 => Some(BinaryOp::UMulHi),
            _ => None,
        })
    }

    /// Reinterprets the value's bits in another numeric type of the same size: a float as an integer, or the reverse.
    pub fn bitcast(self, to: ScalarType) -> Expr<'b> {
        let from = self.used("bitcast").ty;
        if self.missing {
            return self.body.zero(to);
        }
        let number = |ty: ScalarType| ty.is_int() || ty.is_float();
        if !number(from) || !number(to) || from.bits() != to.bits() {
            self.body.note("bitcast", format!("{from} to {to} is not defined; sizes have to be the same"));
            return self.body.zero(to);
        }
        let value = match from.is_float() == to.is_float() {
            true => self.converted(to),
            false => self.with(to, |b| b.convert(ConvertOp::Bitcast, ir_type(to), self.value)),
        };
        if from == to { value } else { value.recorded(|recorder| recorder.bitcast(self, to)) }
    }

    /// Calls a function of C's libm; the name gets the suffix `f` for `float32`.
    fn libm(self, name: &str, args: &[Expr<'b>]) -> Expr<'b> {
        self.used(name);
        let (suffix, ty) = match self.ty {
            ScalarType::Float32 => ("f", ir::Type::F32),
            ScalarType::Float64 => ("", ir::Type::F64),
            _ => return self.unsupported(name),
        };
        let symbol = format!("{name}{suffix}");
        let sig = ir::FuncSig::new(args.iter().map(|_| ty), Some(ty));
        if let Some(found) = self.body.emit(|l| import_conflict(l.b.module(), &symbol, &sig)) {
            self.body.note(name, format!("needs the symbol `{symbol}`, which the module has as {found}"));
            return self;
        }
        let values: Vec<Value> = args.iter().map(|arg| arg.value).collect();
        self.with(self.ty, |b| {
            let func = b.module().import(&symbol, sig);
            b.call(func, &values).unwrap_or(self.value)
        })
        .recorded(|recorder| recorder.numbers(name, args))
    }

    /// The value raised to a power, computed with libm.
    pub fn pow(self, exponent: impl Into<Operand<'b>>) -> Expr<'b> {
        let exponent = self.coerce("pow", exponent.into());
        self.libm("pow", &[self, exponent])
    }

    /// The angle of the point `(x, self)`, from -π to π, computed with libm.
    pub fn atan2(self, x: impl Into<Operand<'b>>) -> Expr<'b> {
        let x = self.coerce("atan2", x.into());
        self.libm("atan2", &[self, x])
    }

    /// The length of the hypotenuse, without intermediate overflow, computed with libm.
    pub fn hypot(self, other: impl Into<Operand<'b>>) -> Expr<'b> {
        let other = self.coerce("hypot", other.into());
        self.libm("hypot", &[self, other])
    }

    /// `self * factor + addend`, rounded once, computed with libm.
    pub fn fma(self, factor: impl Into<Operand<'b>>, addend: impl Into<Operand<'b>>) -> Expr<'b> {
        let factor = self.coerce("fma", factor.into());
        let addend = self.coerce("fma", addend.into());
        self.libm("fma", &[self, factor, addend])
    }
}

macro_rules! libm_functions {
    ($($name:ident: $doc:literal;)*) => {
        #[expect(clippy::return_self_not_must_use, reason = "a body may leave a value unused")]
        impl<'b> Expr<'b> {$(
            #[doc = concat!($doc, ", by libm.")]
            pub fn $name(self) -> Expr<'b> {
                self.libm(stringify!($name), &[self])
            }
        )*}
    };
}
libm_functions! {
    exp: "e to the power of the value";
    exp2: "2 to the power of the value";
    expm1: "e to the power of the value, less 1, exact near 0";
    log: "Natural logarithm";
    log2: "Logarithm to base 2";
    log10: "Logarithm to base 10";
    log1p: "Natural logarithm of the value plus 1, exact near 0";
    cbrt: "Cube root";
    sin: "Sine of the value in radians";
    cos: "Cosine of the value in radians";
    tan: "Tangent of the value in radians";
    asin: "Arcsine in radians";
    acos: "Arccosine in radians";
    atan: "Arctangent in radians";
    sinh: "Hyperbolic sine";
    cosh: "Hyperbolic cosine";
    tanh: "Hyperbolic tangent";
    asinh: "Inverse hyperbolic sine";
    acosh: "Inverse hyperbolic cosine";
    atanh: "Inverse hyperbolic tangent";
    erf: "The error function";
    erfc: "1 less the error function, exact where that is near 1";
}

fn by_kind(ty: ScalarType, signed: BinaryOp, unsigned: BinaryOp, float: BinaryOp) -> Option<BinaryOp> {
    match ty.kind() {
        ScalarKind::Signed => Some(signed),
        ScalarKind::Unsigned => Some(unsigned),
        ScalarKind::Half(_) | ScalarKind::Float32 | ScalarKind::Float64 => Some(float),
        ScalarKind::Bool | ScalarKind::Handle => None,
    }
}

/// Converts an integer or `bool` to an integer type of any width.
fn resize(b: &mut ir::FunctionBuilder<'_>, v: Value, from: ScalarType, to: ScalarType) -> Value {
    let target = ir_type(to);
    match ir_type(from) {
        ir::Type::Bool => b.convert(ConvertOp::ZExt, target, v),
        source if source.bits() > target.bits() => b.convert(ConvertOp::Truncate, target, v),
        source if source.bits() == target.bits() => v,
        _ if from.is_signed_int() => b.convert(ConvertOp::SExt, target, v),
        _ => b.convert(ConvertOp::ZExt, target, v),
    }
}

fn to_float(b: &mut ir::FunctionBuilder<'_>, v: Value, from: ScalarType, to: ScalarType) -> Value {
    let target = ir_type(to);
    if from.is_float() {
        let op = if to == ScalarType::Float64 { ConvertOp::FPromote } else { ConvertOp::FDemote };
        return b.convert(op, target, v);
    }
    // only 32 and 64 bits convert; narrower integers are widened first, without loss
    let unsigned = from.is_unsigned_int() || from == ScalarType::Bool;
    let wide = match (from.bits() < 32, unsigned) {
        (false, _) => v,
        (true, true) => resize(b, v, from, ScalarType::UInt32),
        (true, false) => resize(b, v, from, ScalarType::Int32),
    };
    b.convert(if unsigned { ConvertOp::UIntToFloat } else { ConvertOp::SIntToFloat }, target, wide)
}

fn to_int(b: &mut ir::FunctionBuilder<'_>, v: Value, to: ScalarType) -> Value {
    let op = if to.is_signed_int() { ConvertOp::FloatToSInt } else { ConvertOp::FloatToUInt };
    let Some((min, greatest)) = to.narrow_range().filter(|_| to.bits() < 32) else {
        return b.convert(op, ir_type(to), v);
    };
    // saturate at the narrow type's bounds, which fit in 32 bits
    let wide = b.convert(op, ir::Type::I32, v);
    let greatest = b.iconst(ir::Type::I32, greatest);
    let clamped = if to.is_signed_int() {
        let min = b.iconst(ir::Type::I32, min);
        let low = b.binary(BinaryOp::SMax, wide, min);
        b.binary(BinaryOp::SMin, low, greatest)
    } else {
        b.binary(BinaryOp::UMin, wide, greatest)
    };
    b.convert(ConvertOp::Truncate, ir_type(to), clamped)
}
