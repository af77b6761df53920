//! Values of a body: constants and operands, arithmetic, comparisons, conversions and mathematics.

use super::function::{Failure, Lowerer};
use super::ir_type;
use crate::ir;
use crate::ir::{BinaryOp, ConvertOp, FloatCC, IntCC, UnaryOp, Value};
use crate::lower::protocol::Piece;
use crate::lower::unit::import_conflict;
use crate::spec::ScalarType;

/// A value in a body, of a known scalar type. The operators `+ - * / %` and unary `-` work on it, with another
/// expression of the same type or a plain Rust number.
#[derive(Clone, Copy)]
pub struct Expr<'b> {
    body: &'b dyn Ops,
    pub(super) value: Value,
    ty: ScalarType,
}

impl std::fmt::Debug for Expr<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Expr({}: {})", self.value, self.ty)
    }
}

/// What an [`Expr`] needs of its body, free of the body's own lifetime.
pub(super) trait Ops {
    /// Emits code: runs `f` once.
    fn run(&self, f: &mut dyn FnMut(&mut Lowerer<'_>));
    /// Notes a mistake.
    fn note(&self, operation: &str, problem: String);
}

impl dyn Ops + '_ {
    /// Emits code that gives a value.
    pub(super) fn value(&self, f: impl FnOnce(&mut Lowerer<'_>) -> Value) -> Value {
        // `run` runs it, so the stand-in, the function's first parameter, is never seen
        self.emit(|l| Some(f(l))).unwrap_or(Value::from_u32(0))
    }

    /// Emits code.
    pub(super) fn emit<R: Default>(&self, f: impl FnOnce(&mut Lowerer<'_>) -> R) -> R {
        let mut f = Some(f);
        let mut result = R::default();
        self.run(&mut |l| {
            if let Some(f) = f.take() {
                result = f(l);
            }
        });
        result
    }
}

/// The other side of an operation: an expression, or a number that takes the expression's type.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Operand<'b> {
    /// A value.
    Expr(Expr<'b>),
    /// A whole number.
    Int(i64),
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
    Int(i64): i8, i16, i32, i64, u8, u16, u32;
    Float(f64): f32, f64;
    Bool(bool): bool;
}

impl<'b> Expr<'b> {
    pub(super) fn new(body: &'b dyn Ops, value: Value, ty: ScalarType) -> Self {
        Expr { body, value, ty }
    }

    /// Its type.
    pub fn ty(self) -> ScalarType {
        self.ty
    }

    fn with(self, ty: ScalarType, f: impl FnOnce(&mut ir::FunctionBuilder<'_>) -> Value) -> Expr<'b> {
        Expr::new(self.body, self.body.value(|l| f(&mut l.b)), ty)
    }

    fn constant(self, ty: ScalarType, operand: Operand<'_>) -> Option<Expr<'b>> {
        Some(match (operand, ty) {
            (Operand::Int(v), ScalarType::Float32) => self.with(ty, |b| b.f32(v as f32)),
            (Operand::Int(v), ScalarType::Float64) => self.with(ty, |b| b.f64(v as f64)),
            (Operand::Int(v), _) if ty.is_int() => self.with(ty, |b| b.iconst(ir_type(ty), v)),
            (Operand::Float(v), ScalarType::Float32) => self.with(ty, |b| b.f32(v as f32)),
            (Operand::Float(v), ScalarType::Float64) => self.with(ty, |b| b.f64(v)),
            (Operand::Bool(v), ScalarType::Bool) => self.with(ty, |b| b.bconst(v)),
            _ => return None,
        })
    }

    /// The operand as a value of this expression's type; a mistake where it has another.
    pub(super) fn coerce(self, operation: &str, other: Operand<'b>) -> Expr<'b> {
        let found = match other {
            Operand::Expr(e) if e.ty == self.ty => return e,
            Operand::Expr(e) => e.ty.name(),
            Operand::Int(_) => "an integer",
            Operand::Float(_) => "a float",
            Operand::Bool(_) => "a truth value",
        };
        self.constant(self.ty, other).unwrap_or_else(|| {
            self.body.note(operation, format!("operands are {} and {found}; cast one", self.ty));
            self
        })
    }

    fn unsupported(self, operation: &str) -> Expr<'b> {
        self.body.note(operation, format!("not defined for {}", self.ty));
        self
    }

    fn binary(self, operation: &str, other: Operand<'b>, choose: impl Fn(ScalarType) -> Option<BinaryOp>) -> Expr<'b> {
        let other = self.coerce(operation, other);
        match choose(self.ty) {
            Some(op) => self.with(self.ty, |b| b.binary(op, self.value, other.value)),
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

    /// Integers round towards zero, and a zero divisor returns a `ZeroDivisionError`.
    pub(super) fn div_op(self, other: Operand<'b>) -> Expr<'b> {
        if self.ty.is_int() {
            return self.integer_division("div", other, BinaryOp::SDiv, BinaryOp::UDiv);
        }
        self.binary("div", other, |ty| ty.is_float().then_some(BinaryOp::FDiv))
    }

    /// The remainder has the dividend's sign. Integers only.
    pub(super) fn rem_op(self, other: Operand<'b>) -> Expr<'b> {
        match self.ty.is_int() {
            true => self.integer_division("rem", other, BinaryOp::SRem, BinaryOp::URem),
            false => self.unsupported("rem"),
        }
    }

    /// The IR traps on a zero divisor and on the least value by -1. The first becomes an error of the function, the
    /// second wraps: a divisor of -1 is replaced by 1 and the quotient negated.
    fn integer_division(self, operation: &str, other: Operand<'b>, signed: BinaryOp, unsigned: BinaryOp) -> Expr<'b> {
        let divisor = self.coerce(operation, other);
        let (ty, a) = (self.ty, self.value);
        let value = self.body.value(|l| {
            let constant = l.b.as_int_const(divisor.value);
            if constant.is_none_or(|c| c == 0) {
                let nonzero = l.b.icmp_imm(IntCC::Ne, divisor.value, 0);
                l.check(nonzero, |l| {
                    let parts = [Piece::Text("integer division or modulo by zero")];
                    Failure { row: l.texts.template("ZeroDivisionError", &parts), values: [None; 2] }
                });
            }
            if !ty.is_signed_int() {
                return l.b.binary(unsigned, a, divisor.value);
            }
            if constant.is_some_and(|c| c != -1) {
                return l.b.binary(signed, a, divisor.value);
            }
            let minus_one = l.b.icmp_imm(IntCC::Eq, divisor.value, -1);
            let one = l.b.iconst(ir_type(ty), 1);
            let safe = l.b.select(minus_one, one, divisor.value);
            let result = l.b.binary(signed, a, safe);
            if signed == BinaryOp::SRem {
                // by 1 as by -1 nothing remains
                return result;
            }
            let negated = l.b.unary(UnaryOp::Neg, result);
            l.b.select(minus_one, negated, result)
        });
        Expr::new(self.body, value, ty)
    }

    pub(super) fn neg_op(self) -> Expr<'b> {
        match self.ty {
            ty if ty.is_int() => self.with(ty, |b| b.unary(UnaryOp::Neg, self.value)),
            ty if ty.is_float() => self.with(ty, |b| b.unary(UnaryOp::FNeg, self.value)),
            _ => self.unsupported("neg"),
        }
    }

    pub(super) fn not_op(self) -> Expr<'b> {
        match self.ty {
            ty if ty.is_int() || ty == ScalarType::Bool => self.with(ty, |b| b.unary(UnaryOp::Not, self.value)),
            _ => self.unsupported("not"),
        }
    }

    pub(super) fn bit_op(self, operation: &str, other: Operand<'b>, op: BinaryOp) -> Expr<'b> {
        self.binary(operation, other, |ty| (ty.is_int() || ty == ScalarType::Bool).then_some(op))
    }

    pub(super) fn shl_op(self, other: Operand<'b>) -> Expr<'b> {
        self.binary("shl", other, |ty| ty.is_int().then_some(BinaryOp::Shl))
    }

    /// Arithmetic for signed integers, logical for unsigned ones.
    pub(super) fn shr_op(self, other: Operand<'b>) -> Expr<'b> {
        self.binary("shr", other, |ty| match ty {
            _ if ty.is_signed_int() => Some(BinaryOp::AShr),
            _ if ty.is_unsigned_int() => Some(BinaryOp::LShr),
            _ => None,
        })
    }

    /// The lesser of two; NaN if either is.
    pub fn min(self, other: impl Into<Operand<'b>>) -> Expr<'b> {
        self.binary("min", other.into(), |ty| by_kind(ty, BinaryOp::SMin, BinaryOp::UMin, BinaryOp::FMin))
    }

    /// The greater of two; NaN if either is.
    pub fn max(self, other: impl Into<Operand<'b>>) -> Expr<'b> {
        self.binary("max", other.into(), |ty| by_kind(ty, BinaryOp::SMax, BinaryOp::UMax, BinaryOp::FMax))
    }

    fn compare(self, operation: &str, other: Operand<'b>, signed: IntCC, unsigned: IntCC, float: FloatCC) -> Expr<'b> {
        let other = self.coerce(operation, other);
        let (a, b) = (self.value, other.value);
        let equality = matches!(signed, IntCC::Eq | IntCC::Ne);
        match self.ty {
            ty if ty.is_float() => self.with(ScalarType::Bool, |f| f.fcmp(float, a, b)),
            ty if ty.is_signed_int() => self.with(ScalarType::Bool, |f| f.icmp(signed, a, b)),
            ty if ty.is_int() || ty == ScalarType::Handle || equality => {
                self.with(ScalarType::Bool, |f| f.icmp(unsigned, a, b))
            }
            _ => {
                self.unsupported(operation);
                self.with(ScalarType::Bool, |f| f.bconst(false))
            }
        }
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

    /// `then` where this truth value holds, else `otherwise`; both are computed.
    pub fn select(self, then: Expr<'b>, otherwise: impl Into<Operand<'b>>) -> Expr<'b> {
        let otherwise = then.coerce("select", otherwise.into());
        match self.ty {
            ScalarType::Bool => then.with(then.ty, |b| b.select(self.value, then.value, otherwise.value)),
            _ => {
                self.body.note("select", format!("the condition is {}, expected bool", self.ty));
                then
            }
        }
    }

    /// The value in another type: integers wrap, floats to integers round towards zero and saturate, anything to `bool`
    /// is whether it differs from 0.
    pub fn cast(self, to: ScalarType) -> Expr<'b> {
        let from = self.ty;
        if from == to {
            return self;
        }
        // a pointer is as good as a 64-bit integer, and may be asked whether it is NULL
        let whole = |ty: ScalarType| ty.is_int() && ty.bits() == 64;
        let defined = match (from, to) {
            (ScalarType::Handle, to) => whole(to) || to == ScalarType::Bool,
            (from, ScalarType::Handle) => whole(from),
            _ => true,
        };
        if !defined {
            self.body.note("cast", format!("{from} to {to} is not defined; go by int64"));
            return self.constant(to, Operand::Int(0)).unwrap_or(self);
        }
        let v = self.value;
        self.with(to, |b| match to {
            ScalarType::Bool if from.is_float() => {
                let zero = if from == ScalarType::Float32 { b.f32(0.0) } else { b.f64(0.0) };
                b.fcmp(FloatCC::Ne, v, zero)
            }
            ScalarType::Bool => b.icmp_imm(IntCC::Ne, v, 0),
            ScalarType::Handle => b.convert(ConvertOp::IntToPtr, ir::Type::Ptr, v),
            _ if from == ScalarType::Handle => b.convert(ConvertOp::PtrToInt, ir::Type::I64, v),
            _ if to.is_float() => to_float(b, v, from, to),
            _ if from.is_float() => to_int(b, v, to),
            _ => resize(b, v, from, to),
        })
    }

    /// Square root, correctly rounded.
    pub fn sqrt(self) -> Expr<'b> {
        self.float_unary("sqrt", UnaryOp::Sqrt)
    }

    /// The value without its sign.
    pub fn abs(self) -> Expr<'b> {
        match self.ty {
            ty if ty.is_signed_int() => self.max(-self),
            ty if ty.is_int() => self,
            _ => self.float_unary("abs", UnaryOp::FAbs),
        }
    }

    /// Rounded towards minus infinity.
    pub fn floor(self) -> Expr<'b> {
        self.float_unary("floor", UnaryOp::Floor)
    }

    /// Rounded towards plus infinity.
    pub fn ceil(self) -> Expr<'b> {
        self.float_unary("ceil", UnaryOp::Ceil)
    }

    fn float_unary(self, operation: &str, op: UnaryOp) -> Expr<'b> {
        match self.ty.is_float() {
            true => self.with(self.ty, |b| b.unary(op, self.value)),
            false => self.unsupported(operation),
        }
    }

    /// A function of C's libm, `f` added to its name for `float32`.
    fn libm(self, name: &str, args: &[Value]) -> Expr<'b> {
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
        self.with(self.ty, |b| {
            let func = b.module().import(&symbol, sig);
            b.call(func, args).unwrap_or(self.value)
        })
    }

    /// e to the power of the value, by libm.
    pub fn exp(self) -> Expr<'b> {
        self.libm("exp", &[self.value])
    }

    /// Natural logarithm, by libm.
    pub fn log(self) -> Expr<'b> {
        self.libm("log", &[self.value])
    }

    /// Hyperbolic tangent, by libm.
    pub fn tanh(self) -> Expr<'b> {
        self.libm("tanh", &[self.value])
    }

    /// The error function, by libm.
    pub fn erf(self) -> Expr<'b> {
        self.libm("erf", &[self.value])
    }

    /// The value to a power, by libm.
    pub fn pow(self, exponent: impl Into<Operand<'b>>) -> Expr<'b> {
        let exponent = self.coerce("pow", exponent.into());
        self.libm("pow", &[self.value, exponent.value])
    }
}

fn by_kind(ty: ScalarType, signed: BinaryOp, unsigned: BinaryOp, float: BinaryOp) -> Option<BinaryOp> {
    match ty {
        _ if ty.is_signed_int() => Some(signed),
        _ if ty.is_unsigned_int() => Some(unsigned),
        _ if ty.is_float() => Some(float),
        _ => None,
    }
}

/// An integer or `bool` in a wider, narrower or equal integer type.
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
    // only 32 and 64 bits convert; narrower integers widen without loss
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
    let Some((least, greatest)) = to.narrow_range().filter(|_| to.bits() < 32) else {
        return b.convert(op, ir_type(to), v);
    };
    // saturate at the narrow type's bounds, which 32 bits hold
    let wide = b.convert(op, ir::Type::I32, v);
    let greatest = b.iconst(ir::Type::I32, greatest);
    let clamped = if to.is_signed_int() {
        let least = b.iconst(ir::Type::I32, least);
        let low = b.binary(BinaryOp::SMax, wide, least);
        b.binary(BinaryOp::SMin, low, greatest)
    } else {
        b.binary(BinaryOp::UMin, wide, greatest)
    };
    b.convert(ConvertOp::Truncate, ir_type(to), clamped)
}
