//! Sizes and strides: integer expressions over symbols, and what one says of a symbol; constraints.

use std::fmt;
use std::ops;

/// The size of a dimension, or a stride in elements: an integer expression over symbols.
///
/// A symbol is a name of the signature's own, or an integer parameter. Its first occurrence binds it: alone, or in an
/// expression that can be solved for it. Each later one is compared.
///
/// ```
/// use tvm_ffi_codegen::Dim;
///
/// let dim = Dim::from("n") * 4 + "pad";
/// assert_eq!(dim.to_string(), "n * 4 + pad");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Dim {
    /// A fixed number.
    Const(i64),
    /// A symbol.
    Symbol(String),
    /// Two expressions, computed in 64 bits. A result that doesn't fit is an error, and so is a divisor of 0.
    Binary(DimOp, Box<Dim>, Box<Dim>),
}

/// An operation in a [`Dim`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DimOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `//`, rounded down as in Python.
    FloorDiv,
    /// `%`, with the divisor's sign as in Python.
    Mod,
}

impl DimOp {
    /// Its sign in the text form.
    pub const fn sign(self) -> &'static str {
        match self {
            DimOp::Add => "+",
            DimOp::Sub => "-",
            DimOp::Mul => "*",
            DimOp::FloorDiv => "//",
            DimOp::Mod => "%",
        }
    }

    /// Whether it binds as tightly as `*`.
    pub const fn is_factor(self) -> bool {
        matches!(self, DimOp::Mul | DimOp::FloorDiv | DimOp::Mod)
    }

    /// What it gives; `None` where the result doesn't fit in 64 bits, or for a divisor of 0.
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
        }
    }
}

impl Dim {
    /// Two expressions and an operation.
    pub fn binary(op: DimOp, x: impl Into<Dim>, y: impl Into<Dim>) -> Dim {
        Dim::Binary(op, Box::new(x.into()), Box::new(y.into()))
    }

    /// `self // divisor`, rounded down.
    pub fn floor_div(self, divisor: impl Into<Dim>) -> Dim {
        Dim::binary(DimOp::FloorDiv, self, divisor)
    }

    /// Calls `f` for each occurrence of a symbol, from left to right.
    pub fn for_each_symbol<'a>(&'a self, f: &mut dyn FnMut(&'a str)) {
        match self {
            Dim::Const(_) => {}
            Dim::Symbol(name) => f(name),
            Dim::Binary(_, x, y) => {
                x.for_each_symbol(f);
                y.for_each_symbol(f);
            }
        }
    }

    /// Its value, where `value` gives those of symbols; `None` where a symbol has none, and as [`DimOp::apply`].
    pub fn eval(&self, value: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
        match self {
            Dim::Const(number) => Some(*number),
            Dim::Symbol(name) => value(name),
            Dim::Binary(op, x, y) => op.apply(x.eval(value)?, y.eval(value)?),
        }
    }

    /// How deep operations are nested; 0 for a number or a symbol.
    pub fn depth(&self) -> usize {
        match self {
            Dim::Const(_) | Dim::Symbol(_) => 0,
            Dim::Binary(_, x, y) => 1 + x.depth().max(y.depth()),
        }
    }

    /// What `symbol` has to be for this expression to have the value that `target` stands for: an expression over `target` and the
    /// other symbols. It is only a candidate: put in for the symbol it may give another value than the target's, as for `2 * n`
    /// and 3, and then no value of the symbol gives that one.
    ///
    /// `None` where the symbol doesn't occur exactly once, or under `//`, `%`.
    pub fn solved_for(&self, symbol: &str, target: Dim) -> Option<Dim> {
        let mut count = 0;
        self.for_each_symbol(&mut |name| count += usize::from(name == symbol));
        if count == 1 { self.solve(symbol, target) } else { None }
    }

    fn mentions(&self, symbol: &str) -> bool {
        let mut found = false;
        self.for_each_symbol(&mut |name| found |= name == symbol);
        found
    }

    fn solve(&self, symbol: &str, target: Dim) -> Option<Dim> {
        let (op, x, y) = match self {
            Dim::Const(_) => return None,
            Dim::Symbol(_) => return Some(target),
            Dim::Binary(op, x, y) => (*op, &**x, &**y),
        };
        let left = x.mentions(symbol);
        let (inner, other) = if left { (x, y.clone()) } else { (y, x.clone()) };
        let target = match (op, left) {
            (DimOp::Add, _) => target - other,
            (DimOp::Sub, true) => target + other,
            (DimOp::Sub, false) => other - target,
            (DimOp::Mul, _) => target.floor_div(other),
            (DimOp::FloorDiv | DimOp::Mod, _) => return None,
        };
        inner.solve(symbol, target)
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

impl From<&str> for Dim {
    fn from(name: &str) -> Self {
        Dim::Symbol(name.to_owned())
    }
}

impl From<String> for Dim {
    fn from(name: String) -> Self {
        Dim::Symbol(name)
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
        )*
    };
}
operator! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Rem rem Mod;
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Const(size) => write!(f, "{size}"),
            Dim::Symbol(name) => f.write_str(name),
            Dim::Binary(op, x, y) => {
                write_operand(f, x, |inner| op.is_factor() && !inner.is_factor())?;
                write!(f, " {} ", op.sign())?;
                // operations of one rank go from left to right
                write_operand(f, y, |inner| op.is_factor() || !inner.is_factor())
            }
        }
    }
}

fn write_operand(f: &mut fmt::Formatter<'_>, dim: &Dim, in_parentheses: impl Fn(DimOp) -> bool) -> fmt::Result {
    match dim {
        Dim::Binary(op, ..) if in_parentheses(*op) => write!(f, "({dim})"),
        _ => write!(f, "{dim}"),
    }
}

/// How the two sides of a [`Constraint`] compare.
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
    /// Every comparison.
    pub const ALL: [CompareOp; 6] =
        [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];

    /// Its sign in the text form.
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

/// What has to hold of symbols once they are bound: `n % 16 == 0`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Constraint {
    /// The left side.
    pub left: Dim,
    /// The comparison.
    pub op: CompareOp,
    /// The right side.
    pub right: Dim,
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.left, self.op.sign(), self.right)
    }
}
