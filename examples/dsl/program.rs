//! A checked program: each name is known, each expression has its type, and each access to memory is within a tensor.

use std::fmt;

/// All kernels of a file.
pub struct Program {
    /// The name of the file.
    pub file: String,
    pub kernels: Vec<Kernel>,
}

pub struct Kernel {
    pub head: Head,
    pub doc: String,
    /// Functions that the kernel calls, and that aren't its own. Expressions and statements name them by their numbers
    /// here.
    pub outside: Vec<Outside>,
    /// The parameters that it passes on as they came.
    pub passed_on: Vec<String>,
    pub body: Vec<Statement>,
}

/// The part of a function that callers have to know.
pub struct Head {
    pub name: String,
    /// The line of the name.
    pub line: u32,
    pub params: Vec<Param>,
    pub result: Option<Type>,
    /// The conditions of a call.
    pub constraints: Vec<Constraint>,
}

pub struct Param {
    pub name: String,
    pub ty: Type,
}

pub enum Type {
    Scalar(Scalar),
    Str,
    Tensor(Tensor),
    List(Scalar),
    /// Scalars and tensors, or several returned tensors.
    Tuple(Vec<Type>),
    /// A scalar or a tensor, or none.
    Optional(Box<Type>),
    /// A parameter of the kernel as it came, of a type without parts. Only functions outside have such a parameter.
    Whole,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scalar {
    Bool,
    Int64,
    Float32,
    Float64,
}

#[derive(Clone)]
pub struct Tensor {
    pub element: Scalar,
    pub shape: Vec<Expr>,
    /// In elements; those of contiguous rows, if not stated.
    pub strides: Option<Vec<Expr>>,
}

/// A comparison of sizes.
pub struct Constraint {
    pub left: Expr,
    pub comparison: Comparison,
    pub right: Expr,
}

/// A function that a kernel calls, `int32_t f(params..., T* result)`. A status that isn't 0 ends the kernel with this
/// status.
pub struct Outside {
    pub params: Vec<Type>,
    /// A scalar, or a text.
    pub result: Option<Type>,
    pub effect: Effect,
    /// The line of the call.
    pub line: u32,
}

pub enum Effect {
    /// Raises an error, and returns a status that isn't 0. In the message each `{}` stands for a parameter.
    Raise { kind: String, message: String },
    /// Calls a function of the host, and writes its result.
    Call { function: String },
}

pub enum Statement {
    /// A loop from 0.
    For {
        index: String,
        end: Expr,
        body: Vec<Statement>,
    },
    Let {
        name: String,
        value: Expr,
    },
    If {
        condition: Expr,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    Store {
        access: Access,
        value: Expr,
    },
    Raise {
        outside: usize,
        args: Vec<Argument>,
    },
    Return(Expr),
    /// Returns what a function outside returns, which is no scalar.
    ReturnCall {
        outside: usize,
        args: Vec<Argument>,
    },
}

#[derive(Clone)]
pub struct Expr {
    pub kind: ExprKind,
    pub ty: Scalar,
}

#[derive(Clone)]
pub enum ExprKind {
    Int(i64),
    /// Of type `float32` or `float64`.
    Float(f64),
    /// A parameter, a symbol of a shape, the index of a loop, or the name of a `let`.
    Name(String),
    Negative(Box<Expr>),
    Not(Box<Expr>),
    /// Of two operands of the same type.
    Binary(Operator, Box<Expr>, Box<Expr>),
    Compare(Comparison, Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    /// One of two values, of which the other isn't computed.
    Choose {
        condition: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
    Reduce {
        how: Reduction,
        index: String,
        end: Box<Expr>,
        value: Box<Expr>,
    },
    Math(Math, Box<Expr>),
    /// A conversion to the expression's type.
    Convert(Box<Expr>),
    Load(Access),
    /// Whether an optional parameter is there.
    Given(String),
    /// The number of elements of a list.
    Length(String),
    /// Whether a text is this one.
    TextIs(String, String),
    Call {
        outside: usize,
        args: Vec<Argument>,
    },
}

/// An element of a tensor, or of a list.
#[derive(Clone)]
pub struct Access {
    pub tensor: String,
    /// The tensor's type; for a list, that of a tensor with its elements.
    pub of: Tensor,
    pub is_list: bool,
    pub index: Vec<Index>,
}

#[derive(Clone)]
pub struct Index {
    pub value: Expr,
    /// The function that raises the error of an index that isn't from 0 to the size, exclusive. An index that is always
    /// inside has none.
    pub checked: Option<usize>,
}

/// An argument of a function outside.
#[derive(Clone)]
pub enum Argument {
    Scalar(Expr),
    /// A parameter of type `str`.
    Text(String),
    /// A parameter as it came.
    Whole(String),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operator {
    Add,
    Sub,
    Mul,
    /// Of floats.
    Div,
    /// Of integers, rounded down. The divisor is a number above 0.
    FloorDiv,
    /// Of integers, from 0. The divisor is a number above 0.
    Rem,
    Min,
    Max,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Clone, Copy, Debug)]
pub enum Reduction {
    Sum,
    Max,
    Min,
}

#[derive(Clone, Copy, Debug)]
pub enum Math {
    Sqrt,
    Abs,
}

impl Scalar {
    pub const ALL: [Scalar; 4] = [Scalar::Bool, Scalar::Int64, Scalar::Float32, Scalar::Float64];

    pub fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::Int64 => "int64",
            Scalar::Float32 => "float32",
            Scalar::Float64 => "float64",
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Scalar::Float32 | Scalar::Float64)
    }
}

impl Operator {
    fn sign(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Sub => "-",
            Operator::Mul => "*",
            Operator::Div => "/",
            Operator::FloorDiv => "//",
            Operator::Rem => "%",
            Operator::Min => "min",
            Operator::Max => "max",
        }
    }
}

impl Comparison {
    pub fn sign(self) -> &'static str {
        match self {
            Comparison::Eq => "==",
            Comparison::Ne => "!=",
            Comparison::Lt => "<",
            Comparison::Le => "<=",
            Comparison::Gt => ">",
            Comparison::Ge => ">=",
        }
    }
}

impl Reduction {
    /// The operator that takes one more value in.
    pub fn operator(self) -> Operator {
        match self {
            Reduction::Sum => Operator::Add,
            Reduction::Max => Operator::Max,
            Reduction::Min => Operator::Min,
        }
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.left, self.comparison.sign(), self.right)
    }
}

/// Sizes as the language writes them.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ExprKind::Int(value) => write!(f, "{value}"),
            ExprKind::Name(name) => f.write_str(name),
            ExprKind::Length(list) => write!(f, "len({list})"),
            ExprKind::Binary(operator, left, right) => write!(f, "({left} {} {right})", operator.sign()),
            _ => f.write_str("..."),
        }
    }
}
