//! Sizes and strides: integer expressions over variables, and how to solve them for a variable. Also constraints.

use std::fmt;
use std::ops;

use super::location::Origin;

/// The requirement on sizes, in messages. It is a macro so that other literals can contain it.
macro_rules! any_size {
    () => {
        "a size of at least 0"
    };
}
pub(crate) use any_size;

/// The size of a dimension, or a stride in elements: an integer expression over variables.
///
/// A variable is a name local to the signature, or an integer parameter. Its first occurrence binds it: alone, or in an
/// expression that can be solved for it. Each later occurrence is compared.
///
/// ```
/// use tvm_ffi_codegen::{Dim, dim};
///
/// let size = 2 * dim("n") + "pad";
/// assert_eq!(size.to_string(), "2 * n + pad");
/// assert_eq!("2 * n + pad".parse(), Ok(size));
///
/// // `/` rounds down and `%` has the divisor's sign, as Python's `//` and `%`
/// let blocks = (dim("n") + 127) / 128_usize;
/// assert_eq!(blocks.to_string(), "(n + 127) // 128");
/// assert_eq!((dim(-7) / 2).eval(&|_| None), Some(-4));
///
/// let tiles = dim("n").ceil_div(128).max(1);
/// assert_eq!(tiles.to_string(), "max(ceil_div(n, 128), 1)");
/// # Ok::<(), tvm_ffi_codegen::spec::SyntaxError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
#[must_use]
pub enum Dim {
    /// A fixed number.
    Const(i64),
    /// A variable.
    Var(String),
    /// An operation on two expressions, computed in 64 bits. An overflow is an error, and so is division by 0.
    Binary(DimOp, Box<Dim>, Box<Dim>),
}

/// Makes a dimension from a variable's name or a number, for use in expressions: `2 * dim("n")`.
///
/// On the left of an operator, a number must be an `i64`; for other types, write `dim(count) * dim("n")`. On the
/// right it may be of any type that converts to [`Dim`].
pub fn dim(value: impl Into<Dim>) -> Dim {
    value.into()
}

/// An operation in a [`Dim`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DimOp {
    /// The sum, `+`.
    Add,
    /// The difference, `-`.
    Sub,
    /// The product, `*`.
    Mul,
    /// The quotient rounded down as in Python, `//`.
    FloorDiv,
    /// The remainder with the divisor's sign as in Python, `%`.
    Mod,
    /// The quotient rounded up, `ceil_div(x, y)`.
    CeilDiv,
    /// The smaller of two values, `min(x, y)`.
    Min,
    /// The greater of two values, `max(x, y)`.
    Max,
}

impl DimOp {
    /// The operations that are written as functions in the text form.
    pub const FUNCTIONS: [DimOp; 3] = [DimOp::CeilDiv, DimOp::Min, DimOp::Max];

    /// The operation's operator in the text form, or the name of its function.
    pub const fn sign(self) -> &'static str {
        match self {
            DimOp::Add => "+",
            DimOp::Sub => "-",
            DimOp::Mul => "*",
            DimOp::FloorDiv => "//",
            DimOp::Mod => "%",
            DimOp::CeilDiv => "ceil_div",
            DimOp::Min => "min",
            DimOp::Max => "max",
        }
    }

    /// Whether the text form has a function for the operation instead of an infix operator.
    pub const fn is_function(self) -> bool {
        matches!(self, DimOp::CeilDiv | DimOp::Min | DimOp::Max)
    }

    /// Whether the second operand is a divisor, which must not be 0.
    pub const fn is_division(self) -> bool {
        matches!(self, DimOp::FloorDiv | DimOp::Mod | DimOp::CeilDiv)
    }

    /// Whether the operation binds as tightly as `*`.
    pub const fn is_factor(self) -> bool {
        matches!(self, DimOp::Mul | DimOp::FloorDiv | DimOp::Mod)
    }

    /// The operation's result; `None` if it doesn't fit in 64 bits or the divisor is 0.
    pub fn apply(self, x: i64, y: i64) -> Option<i64> {
        match self {
            DimOp::Add => x.checked_add(y),
            DimOp::Sub => x.checked_sub(y),
            DimOp::Mul => x.checked_mul(y),
            DimOp::FloorDiv => {
                let quotient = x.checked_div(y)?;
                let rounded_up = x % y != 0 && (x < 0) != (y < 0);
                Some(if rounded_up { quotient - 1 } else { quotient })
            }
            DimOp::Mod => {
                let rest = if y == -1 { 0 } else { x.checked_rem(y)? };
                Some(if rest != 0 && (rest < 0) != (y < 0) { rest + y } else { rest })
            }
            DimOp::CeilDiv => {
                let quotient = x.checked_div(y)?;
                let rounded_down = x % y != 0 && (x < 0) == (y < 0);
                Some(if rounded_down { quotient + 1 } else { quotient })
            }
            DimOp::Min => Some(x.min(y)),
            DimOp::Max => Some(x.max(y)),
        }
    }
}

impl fmt::Display for DimOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sign())
    }
}

impl Dim {
    /// An operation on two expressions.
    pub fn binary(op: DimOp, x: impl Into<Dim>, y: impl Into<Dim>) -> Dim {
        Dim::Binary(op, Box::new(x.into()), Box::new(y.into()))
    }

    /// The quotient rounded down, `self // divisor`; the same as the operator `/`.
    pub fn floor_div(self, divisor: impl Into<Dim>) -> Dim {
        Dim::binary(DimOp::FloorDiv, self, divisor)
    }

    /// The quotient rounded up, `ceil_div(self, divisor)`: for example the number of tiles that cover a size.
    pub fn ceil_div(self, divisor: impl Into<Dim>) -> Dim {
        Dim::binary(DimOp::CeilDiv, self, divisor)
    }

    /// The smaller of this value and another, `min(self, other)`.
    pub fn min(self, other: impl Into<Dim>) -> Dim {
        Dim::binary(DimOp::Min, self, other)
    }

    /// The greater of this value and another, `max(self, other)`.
    pub fn max(self, other: impl Into<Dim>) -> Dim {
        Dim::binary(DimOp::Max, self, other)
    }

    /// Calls `f` for each occurrence of a variable, from left to right.
    pub fn for_each_var<'a>(&'a self, f: &mut dyn FnMut(&'a str)) {
        match self {
            Dim::Const(_) => {}
            Dim::Var(name) => f(name),
            Dim::Binary(_, x, y) => {
                x.for_each_var(f);
                y.for_each_var(f);
            }
        }
    }

    /// Evaluates the expression; `value` returns the values of variables. `None` if a variable has no value, and in the
    /// cases of [`DimOp::apply`].
    pub fn eval(&self, value: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
        match self {
            Dim::Const(number) => Some(*number),
            Dim::Var(name) => value(name),
            Dim::Binary(op, x, y) => op.apply(x.eval(value)?, y.eval(value)?),
        }
    }

    /// Replaces an expression without variables by its value, if it has one.
    pub(super) fn fold(&mut self) {
        // no variable has a value here
        if let Some(value) = self.eval(&|_| None) {
            *self = Dim::Const(value);
        }
    }

    /// The nesting depth of operations; 0 for a number or a variable.
    pub fn depth(&self) -> usize {
        match self {
            Dim::Const(_) | Dim::Var(_) => 0,
            Dim::Binary(_, x, y) => 1 + x.depth().max(y.depth()),
        }
    }

    /// Solves the equation "this expression = `target`" for `var`; the result is an expression over `target` and
    /// the other variables. It is only a candidate, so substitute it and compare. For `2 * n` and the target 3, no
    /// value of `n` is a solution.
    ///
    /// `None` unless the variable occurs exactly once, and outside `//`, `%` and functions.
    pub fn solved_for(&self, var: &str, target: Dim) -> Option<Dim> {
        let mut count = 0;
        self.for_each_var(&mut |name| count += usize::from(name == var));
        if count == 1 { self.solve(var, target) } else { None }
    }

    /// True if what [`solved_for`](Self::solved_for) returns is a solution whenever no step overflows: it divides
    /// nothing.
    pub(crate) fn is_sum_of(&self, var: &str) -> bool {
        match self {
            Dim::Var(name) => name == var,
            Dim::Binary(DimOp::Add | DimOp::Sub, x, y) => x.is_sum_of(var) || y.is_sum_of(var),
            _ => false,
        }
    }

    fn mentions(&self, var: &str) -> bool {
        let mut found = false;
        self.for_each_var(&mut |name| found |= name == var);
        found
    }

    fn solve(&self, var: &str, target: Dim) -> Option<Dim> {
        let (op, x, y) = match self {
            Dim::Const(_) => return None,
            Dim::Var(_) => return Some(target),
            Dim::Binary(op, x, y) => (*op, &**x, &**y),
        };
        let left = x.mentions(var);
        let (inner, other) = if left { (x, y.clone()) } else { (y, x.clone()) };
        let target = match (op, left) {
            (DimOp::Add, _) => target - other,
            (DimOp::Sub, true) => target + other,
            (DimOp::Sub, false) => other - target,
            (DimOp::Mul, _) => target.floor_div(other),
            (DimOp::FloorDiv | DimOp::Mod | DimOp::CeilDiv | DimOp::Min | DimOp::Max, _) => return None,
        };
        inner.solve(var, target)
    }
}

impl From<i64> for Dim {
    fn from(size: i64) -> Self {
        Dim::Const(size)
    }
}

impl From<i32> for Dim {
    fn from(size: i32) -> Self {
        Dim::Const(i64::from(size))
    }
}

impl From<u32> for Dim {
    fn from(size: u32) -> Self {
        Dim::Const(i64::from(size))
    }
}

impl From<u64> for Dim {
    /// Converts a number. Past 2^63 - 1 the result is an equal expression, which a signature rejects because its
    /// value doesn't fit in 64 bits.
    fn from(size: u64) -> Self {
        match i64::try_from(size) {
            Ok(size) => Dim::Const(size),
            Err(_) => Dim::Const((size / 2).cast_signed()) * 2 + Dim::Const((size % 2).cast_signed()),
        }
    }
}

impl From<usize> for Dim {
    /// Converts a number, as for `u64`.
    fn from(size: usize) -> Self {
        Dim::from(size as u64)
    }
}

impl From<&str> for Dim {
    fn from(name: &str) -> Self {
        Dim::Var(name.to_owned())
    }
}

impl From<String> for Dim {
    fn from(name: String) -> Self {
        Dim::Var(name)
    }
}

impl From<&String> for Dim {
    fn from(name: &String) -> Self {
        Dim::Var(name.clone())
    }
}

impl From<&Dim> for Dim {
    fn from(dim: &Dim) -> Self {
        dim.clone()
    }
}

macro_rules! operator {
    ($($trait:ident $method:ident $op:ident;)*) => {
        $(
            impl<D: Into<Dim>> ops::$trait<D> for Dim {
                type Output = Dim;

                fn $method(self, other: D) -> Dim {
                    Dim::binary(DimOp::$op, self, other)
                }
            }

            impl<D: Into<Dim>> ops::$trait<D> for &Dim {
                type Output = Dim;

                fn $method(self, other: D) -> Dim {
                    Dim::binary(DimOp::$op, self, other)
                }
            }

            // `i64` is the only integer type here, so `2` in `2 * dim("n")` has an unambiguous type
            operator!(left $trait $method $op: i64, &str);
        )*
    };
    (left $trait:ident $method:ident $op:ident: $($left:ty),*) => {
        $(
            impl ops::$trait<Dim> for $left {
                type Output = Dim;

                fn $method(self, other: Dim) -> Dim {
                    Dim::binary(DimOp::$op, self, other)
                }
            }

            impl ops::$trait<&Dim> for $left {
                type Output = Dim;

                fn $method(self, other: &Dim) -> Dim {
                    Dim::binary(DimOp::$op, self, other)
                }
            }
        )*
    };
}
operator! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div FloorDiv;
    Rem rem Mod;
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Const(size) => write!(f, "{size}"),
            Dim::Var(name) => f.write_str(name),
            Dim::Binary(op, x, y) if op.is_function() => write!(f, "{}({x}, {y})", op.sign()),
            Dim::Binary(op, x, y) => {
                write_operand(f, x, |inner| op.is_factor() && !inner.is_factor())?;
                write!(f, " {} ", op.sign())?;
                // operations of equal precedence associate to the left
                write_operand(f, y, |inner| op.is_factor() || !inner.is_factor())
            }
        }
    }
}

fn write_operand(f: &mut fmt::Formatter<'_>, dim: &Dim, in_parentheses: impl Fn(DimOp) -> bool) -> fmt::Result {
    match dim {
        Dim::Binary(op, ..) if !op.is_function() && in_parentheses(*op) => write!(f, "({dim})"),
        _ => write!(f, "{dim}"),
    }
}

/// The operator of a [`Constraint`]. There are no others, so you can match it exhaustively.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // the names are the field's own
pub enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl CompareOp {
    /// All comparison operators.
    pub const ALL: [CompareOp; 6] =
        [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];

    /// The operator in the text form.
    pub const fn sign(self) -> &'static str {
        match self {
            CompareOp::Eq => "==",
            CompareOp::Ne => "!=",
            CompareOp::Lt => "<",
            CompareOp::Le => "<=",
            CompareOp::Gt => ">",
            CompareOp::Ge => ">=",
        }
    }

    /// Whether the comparison holds.
    pub const fn holds(self, x: i64, y: i64) -> bool {
        match self {
            CompareOp::Eq => x == y,
            CompareOp::Ne => x != y,
            CompareOp::Lt => x < y,
            CompareOp::Le => x <= y,
            CompareOp::Gt => x > y,
            CompareOp::Ge => x >= y,
        }
    }
}

impl fmt::Display for CompareOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sign())
    }
}

/// A comparison that must hold once variables are bound: `n % 16 == 0`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Constraint {
    /// The left side.
    pub left: Dim,
    /// The comparison.
    pub op: CompareOp,
    /// The right side.
    pub right: Dim,
    /// The constraint's location in the source.
    pub(super) origin: Origin,
}

impl Constraint {
    /// Creates a constraint from two expressions.
    pub fn new(left: impl Into<Dim>, op: CompareOp, right: impl Into<Dim>) -> Self {
        Constraint { left: left.into(), op, right: right.into(), origin: Origin::default() }
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.left, self.op, self.right)
    }
}
