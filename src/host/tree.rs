//! The tree of a text of host functions. Each node that can have an error knows its bytes in the text.

use std::ops::Range;
use std::sync::Arc;

use crate::spec::{CompareOp, HostItems, KernelArg, Launch, ParamType, Part, ScalarType, Signature, SourceLocation};

use super::words::Word;

/// Bytes of the text.
pub(crate) type Span = Range<usize>;

/// A name, a string or another value with its bytes in the text.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct At<T> {
    pub span: Span,
    pub value: T,
}

/// A comment. The printer puts it where it was between statements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Comment {
    /// The byte at which it begins.
    pub at: usize,
    /// With its `#`.
    pub text: String,
    /// The byte after the token before it on the same line.
    pub behind: Option<usize>,
    /// True if an empty line follows.
    pub is_apart: bool,
}

impl Comment {
    /// True for a line of the next function's documentation.
    pub(crate) fn is_doc(&self) -> bool {
        self.behind.is_none() && self.text.starts_with("##")
    }
}

/// A file of functions.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub items: Vec<Item>,
    /// In order of appearance.
    pub comments: Arc<[Comment]>,
}

impl File {
    pub(crate) fn functions(&self) -> impl Iterator<Item = &Function> {
        self.items
            .iter()
            .filter_map(|item| if let ItemKind::Function(function) = &item.kind { Some(&**function) } else { None })
    }

    /// Functions that are registered as global functions, each with its global name.
    pub(crate) fn globals(&self) -> impl Iterator<Item = (&At<String>, &str)> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Register(function, global) => Some((function, global.as_str())),
            ItemKind::Function(_) => None,
        })
    }
}

/// A part of a file.
#[derive(Debug)]
pub(crate) struct Item {
    pub span: Span,
    pub kind: ItemKind,
}

#[derive(Debug)]
pub(crate) enum ItemKind {
    Function(Box<Function>),
    /// Registers a function as a global function with that name.
    Register(At<String>, String),
}

/// A block that is a text of its own, or a part of one.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub block: Arc<Block>,
    /// The comments of the whole text, in order of appearance.
    pub comments: Arc<[Comment]>,
}

/// A function of a file.
#[derive(Debug)]
pub(crate) struct Function {
    pub signature: Signature,
    /// Whether the text declares a C function, with `extern`.
    pub is_extern: bool,
    /// The bytes of its signature.
    pub span: Span,
    pub kernel: FunctionKernel,
}

/// The kernel of a function.
#[derive(Debug)]
pub(crate) enum FunctionKernel {
    CheckOnly,
    Body(Text),
    Launch(Box<LaunchOf>),
    Symbol { symbol: String, convention: Option<At<String>>, returns: Option<At<String>>, args: Option<Vec<KernelArg>> },
}

/// A launch, with the items that only host functions have.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct LaunchOf {
    pub launch: Launch,
    pub items: HostItems,
}

/// A place before a function: of the signature, or of a part of it.
#[derive(Debug)]
pub(crate) struct Place {
    pub part: At<PlaceOf>,
    pub location: SourceLocation,
}

/// The part that a place is of.
#[derive(Debug)]
pub(crate) enum PlaceOf {
    Param(String),
    Part(Part),
}

/// Statements in braces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    pub span: Span,
    pub statements: Vec<Statement>,
}

#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub span: Span,
    pub kind: StatementKind,
}

#[derive(Clone, Debug)]
pub(crate) enum StatementKind {
    Let(At<String>, Expr),
    Var(At<String>),
    /// An assignment to a variable or to an element.
    Set(Expr, Expr),
    /// A call, or an operation without a value.
    Do(Expr),
    /// A call that ends the function.
    Forward(Expr),
    Return(Option<Expr>),
    Break,
    Continue(Vec<Expr>),
    If(If),
    Match(Box<Match>),
    While(Box<While>),
    For(Box<For>),
    Try(Box<Try>),
    /// Launches that go out together.
    Graph(Block),
    Raise(Error, Option<At<String>>),
    RaiseAgain(At<String>),
    Ensure(Expr, Error),
    Launch(Box<LaunchOf>),
    Location(Location),
}

/// The branches of an `if`: each with its condition, and the last one without.
#[derive(Clone, Debug)]
pub(crate) struct If {
    pub branches: Vec<(Expr, Block)>,
    pub otherwise: Option<Block>,
}

/// Rows of patterns, the first of which that holds for the keys runs.
#[derive(Clone, Debug)]
pub(crate) struct Match {
    pub keys: Vec<MatchKey>,
    pub rows: Vec<MatchRow>,
    pub otherwise: Option<Block>,
}

#[derive(Clone, Debug)]
pub(crate) struct MatchKey {
    /// Its name in messages; `None` for the text of the value.
    pub name: Option<String>,
    pub value: Expr,
}

#[derive(Clone, Debug)]
pub(crate) struct MatchRow {
    pub span: Span,
    pub patterns: Vec<At<Pattern>>,
    pub block: Block,
}

/// The values of a key that a row takes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Pattern {
    /// `_`
    Any,
    Int(i128),
    Bool(bool),
    Text(Vec<u8>),
    /// The name of a dtype.
    Name(String),
    /// `range(a, b)`
    Range(i128, i128),
}

#[derive(Clone, Debug)]
pub(crate) struct While {
    pub condition: Scoped,
    pub carried: Vec<(At<String>, Expr)>,
    pub block: Block,
}

#[derive(Clone, Debug)]
pub(crate) struct For {
    pub index: At<String>,
    pub start: Expr,
    pub end: Expr,
    pub step: Option<Expr>,
    pub carried: Vec<(At<String>, Expr)>,
    pub block: Block,
}

#[derive(Clone, Debug)]
pub(crate) struct Try {
    pub attempt: Block,
    pub name: At<String>,
    pub handler: Block,
}

/// The error that a statement raises.
#[derive(Clone, Debug)]
pub(crate) struct Error {
    pub kind: String,
    pub message: String,
    pub values: Vec<Expr>,
}

/// A place inside a body.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Location {
    Whole(SourceLocation),
    Line(u32),
    None,
}

/// Statements that end with a value.
#[derive(Clone, Debug)]
pub(crate) struct Scoped {
    pub block: Block,
    pub value: Expr,
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub span: Span,
    /// The depth of the expressions nested in this one.
    pub depth: usize,
    pub kind: Box<ExprKind>,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Int(i128),
    Float(f64),
    Bool(bool),
    Text(Vec<u8>),
    None,
    Name(String),
    /// An element of a tensor, or an item of a tuple.
    Index(Expr, Vec<Expr>),
    /// `x.shape`, `s.size`.
    Part(Expr, At<String>),
    Unary(UnaryOp, Expr),
    /// Operators of one precedence, from left to right, each with its bytes in the text.
    Chain(Expr, Vec<(At<BinaryOp>, Expr)>),
    Compare(Expr, At<CompareOp>, Expr),
    /// `v is str`
    Is(Expr, At<String>),
    /// `int32(v)`
    Cast(ScalarType, Expr),
    Word(Word, Vec<Input>),
    Chosen(Expr, Scoped, Scoped),
    Call(Box<Call>),
    /// `v as type`
    As(Expr, Box<ParamType>),
    Closure(Box<Closure>),
    /// A list, as an input of an operation.
    List(Vec<Expr>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UnaryOp {
    Neg,
    /// `not`
    Not,
    /// `~`
    Invert,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BinaryOp {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Shl,
    Shr,
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    FloorRem,
}

impl BinaryOp {
    /// The operator in the text.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            BinaryOp::Or => "or",
            BinaryOp::And => "and",
            BinaryOp::BitOr => "|",
            BinaryOp::BitXor => "^",
            BinaryOp::BitAnd => "&",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::FloorDiv => "//",
            BinaryOp::FloorRem => "%",
        }
    }
}

/// An input of an operation or a call.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub name: Option<At<String>>,
    pub value: Expr,
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub callee: Callee,
    pub inputs: Vec<Input>,
    pub returns: Option<ParamType>,
}

#[derive(Clone, Debug)]
pub(crate) enum Callee {
    Global { name: String, uncached: bool },
    Import(String),
    Symbol(String),
    Value(Expr),
}

#[derive(Clone, Debug)]
pub(crate) struct Closure {
    /// Each with its name, type and value.
    pub captures: Vec<(At<String>, ParamType, Expr)>,
    pub signature: Signature,
    pub body: Arc<Block>,
}
