//! The tree that the parser makes: the text's structure, in which no name is looked up yet.

use super::program::{Comparison, Math, Operator, Reduction, Scalar};

/// A place in the text; both numbers begin at 1, and columns are counted in characters.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub line: u32,
    pub column: u32,
}

/// An error on the way: its place, and the problem.
pub type Result<T> = std::result::Result<T, (Place, String)>;

pub enum Item {
    Extern { name: Name, params: Vec<Type>, result: Type },
    Kernel(Kernel),
}

#[derive(Clone)]
pub struct Name {
    pub text: String,
    pub place: Place,
}

pub struct Kernel {
    pub name: Name,
    pub doc: String,
    pub params: Vec<(Name, Type)>,
    pub result: Option<Type>,
    pub constraints: Vec<Expr>,
    pub body: Vec<Statement>,
    /// The bracket behind the body.
    pub end: Place,
}

#[derive(Clone)]
pub struct Type {
    pub base: Base,
    pub optional: bool,
    pub place: Place,
}

#[derive(Clone)]
pub enum Base {
    Str,
    Scalar(Scalar),
    Tensor { element: Scalar, shape: Vec<Expr>, strides: Option<Vec<Expr>> },
    List(Scalar),
    Tuple(Vec<Type>),
}

pub struct Statement {
    pub kind: StatementKind,
    pub place: Place,
}

pub enum StatementKind {
    For { index: Name, end: Expr, body: Vec<Statement> },
    Let { name: Name, value: Expr },
    If { condition: Expr, then: Vec<Statement>, otherwise: Vec<Statement> },
    Store { tensor: Name, index: Vec<Expr>, value: Expr },
    Raise { kind: String, message: String, values: Vec<Expr> },
    Return(Expr),
}

#[derive(Clone)]
pub struct Expr {
    pub kind: ExprKind,
    pub place: Place,
}

#[derive(Clone)]
pub enum ExprKind {
    Int(i64),
    Float(f64),
    Text(String),
    Name(String),
    Negative(Box<Expr>),
    Not(Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    Compare(Comparison, Box<Expr>, Box<Expr>),
    /// `and`, or `or`.
    Logic {
        is_and: bool,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Choose {
        condition: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
    Reduce {
        how: Reduction,
        index: Name,
        end: Box<Expr>,
        value: Box<Expr>,
    },
    Math(Math, Box<Expr>),
    Load {
        tensor: String,
        index: Vec<Expr>,
    },
    Call {
        function: String,
        args: Vec<Expr>,
    },
}
