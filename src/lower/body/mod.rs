//! The body builder: a kernel written by the compiler in terms of its parameters, compiled with the wrapper, which calls it.
//!
//! A body sees the parameters after all checks. It is written once and runs on every backend and on the interpreter. A
//! mistake (a name that isn't there, operands of two types) is noted, and all of them come back as one
//! [`LowerError::Body`]; nothing panics.

mod args;
mod control;
mod expr;
mod function;
mod ops;
mod param;
mod tensor;

use std::cell::RefCell;
use std::fmt;

use super::convention::abi_param;
use super::error::{BodyMistake, LowerError};
use super::unit::Unit;
use crate::ir::{self, FuncRef, Type, Value};
use crate::spec::{ParamType, ScalarType, Signature};

use args::{Arg, Args};
pub use expr::{Expr, Operand};
use expr::{Ops, Scope};
use function::Lowerer;
pub use param::ParamRef;
pub use tensor::TensorRef;

/// A kernel's body under construction. See [`Kernel::body`](super::Kernel::body).
///
/// ```
/// use tvm_ffi_codegen::Kernel;
///
/// // saxpy(a: float32, x: Tensor([n], float32), y: Tensor([n], float32))
/// let saxpy = Kernel::body(|b| {
///     let (a, x, y) = (b.arg("a"), b.tensor("x"), b.tensor("y"));
///     b.for_range(0, b.dim("n"), |i| y.store([i], a * x.load([i]) + y.load([i])));
/// });
/// # let _ = saxpy;
/// ```
pub struct Body<'a> {
    signature: &'a Signature,
    args: &'a Args,
    state: RefCell<State<'a>>,
}

/// What building a body changes.
/// The state of a body under construction.
struct State<'a> {
    lowerer: &'a mut dyn Emit,
    mistakes: Vec<BodyMistake>,
    /// The blocks of the body's text that are being written, each inside of the one before.
    open: Vec<Scope>,
    /// How many of them there have been.
    scopes: u32,
}

/// The lowerer as a body sees it, without its lifetime.
trait Emit {
    fn run(&mut self, f: &mut dyn FnMut(&mut Lowerer<'_>));
}

impl Emit for Lowerer<'_> {
    fn run(&mut self, f: &mut dyn FnMut(&mut Lowerer<'_>)) {
        f(self);
    }
}

impl Ops for Body<'_> {
    fn run(&self, f: &mut dyn FnMut(&mut Lowerer<'_>)) {
        self.state.borrow_mut().lowerer.run(f);
    }

    fn note(&self, operation: &str, problem: String) {
        let mistake = BodyMistake { operation: operation.to_owned(), problem };
        self.state.borrow_mut().mistakes.push(mistake);
    }

    fn scope(&self) -> Scope {
        self.state.borrow().open.last().copied().unwrap_or(Scope::BODY)
    }

    fn is_open(&self, scope: Scope) -> bool {
        scope == Scope::BODY || self.state.borrow().open.contains(&scope)
    }
}

/// What a body has become.
pub(super) enum Code {
    /// A function of the module.
    Function(FuncRef),
    /// Code without branches, which the wrapper takes in.
    Straight(ir::Function),
}

/// Defines the function of a body; the wrapper calls it with its checked arguments.
pub(super) fn lower(into: &mut Unit, signature: &Signature, build: &dyn Fn(&Body<'_>)) -> Result<Code, LowerError> {
    let taken = into.module.function_named(&function::symbol(signature)).is_some();
    if taken {
        return Err(LowerError::DuplicateName { name: signature.name().to_owned() });
    }
    let declared = into.module.functions.len();
    let (func, built) = function::define(into, signature, |l, args| fill(l, signature, args, build));
    built?;
    // what it calls is declared behind it, and stays
    let alone = into.module.functions.len() == declared + 1;
    match &mut into.module.functions[func].body {
        Some(body) if body.is_straight() && alone => {
            let body = std::mem::take(body);
            into.module.truncate_functions(declared);
            Ok(Code::Straight(body))
        }
        _ => Ok(Code::Function(func)),
    }
}

/// Builds the body at the lowerer's current block and returns from the function.
fn fill(l: &mut Lowerer<'_>, signature: &Signature, args: &Args, build: &dyn Fn(&Body<'_>)) -> Result<(), LowerError> {
    let state = State { lowerer: l, mistakes: Vec::new(), open: Vec::new(), scopes: 0 };
    let body = Body { signature, args, state: RefCell::new(state) };
    build(&body);
    let mut mistakes = body.state.into_inner().mistakes;
    if !l.b.is_terminated() {
        match signature.ret().and_then(ParamType::as_scalar) {
            None => l.succeed(),
            Some(ty) if l.b.is_reachable() => mistakes.push(BodyMistake {
                operation: "ret".to_owned(),
                problem: format!("the body can end without returning its {ty}"),
            }),
            // what follows a `ret` or `raise` never runs, but still has to end
            Some(_) => l.succeed(),
        }
    }
    match mistakes.is_empty() {
        true => Ok(()),
        false => Err(LowerError::Body { function: signature.name().to_owned(), mistakes }),
    }
}

impl<'a> Body<'a> {
    fn emit<R: Default>(&self, f: impl FnOnce(&mut Lowerer<'_>) -> R) -> R {
        let ops: &dyn Ops = self;
        ops.emit(f)
    }

    fn value(&self, f: impl FnOnce(&mut Lowerer<'_>) -> Value) -> Value {
        let ops: &dyn Ops = self;
        ops.value(f)
    }

    /// Notes a mistake.
    fn mistake(&self, operation: impl AsRef<str>, problem: impl Into<String>) {
        self.note(operation.as_ref(), problem.into());
    }

    fn expr(&self, value: Value, ty: ScalarType) -> Expr<'_> {
        Expr::new(self, value, ty)
    }

    /// What stands for a value after a mistake: zero of that type.
    fn placeholder(&self, ty: ScalarType) -> Expr<'_> {
        let ops: &dyn Ops = self;
        ops.zero(ty)
    }

    /// An operand as a value of that type; a mistake where it can't be.
    fn coerce<'b>(&'b self, operation: &str, ty: ScalarType, operand: Operand<'b>) -> Expr<'b> {
        let ops: &'b dyn Ops = self;
        ops.coerce(operation, ty, operand)
    }

    /// Writes what is inside of a loop or a conditional: expressions that it makes end with it.
    fn inside<R>(&self, write: impl FnOnce() -> R) -> R {
        let mut state = self.state.borrow_mut();
        state.scopes += 1;
        let scope = Scope(state.scopes);
        state.open.push(scope);
        drop(state);
        let result = write();
        self.state.borrow_mut().open.pop();
        result
    }

    /// The scalar parameter of that name, or at that path in a tuple: `cfg[2][0]`. [`param`](Self::param) finds it by numbers.
    ///
    /// Characters, sizes and elements are pointers, with their number under `name.size`; objects and a stream are pointers too; a dtype and
    /// a device are their bits.
    pub fn arg(&self, name: &str) -> Expr<'_> {
        match self.args.find(name) {
            Some((_, Arg::Scalar(ty, value))) => Expr::of_params(self, *value, *ty),
            Some((_, Arg::Tensor(_))) => {
                self.mistake(format!("arg({name:?})"), "is a tensor; use `tensor`");
                self.placeholder(ScalarType::Int64)
            }
            None => {
                self.mistake(format!("arg({name:?})"), format!("`{}` has no such parameter", self.signature));
                self.placeholder(ScalarType::Int64)
            }
        }
    }

    /// The tensor parameter of that name, or at that path in a tuple.
    pub fn tensor(&self, name: &str) -> TensorRef<'_> {
        match self.args.find(name) {
            Some((path, Arg::Tensor(vars))) => TensorRef::new(self, path, vars),
            Some((_, Arg::Scalar(..))) => {
                self.mistake(format!("tensor({name:?})"), "is a scalar; use `arg`");
                TensorRef::missing(self)
            }
            None => {
                self.mistake(format!("tensor({name:?})"), format!("`{}` has no such parameter", self.signature));
                TensorRef::missing(self)
            }
        }
    }

    /// The tensor that the function returns.
    pub fn result(&self) -> TensorRef<'_> {
        match &self.args.result {
            Some(Arg::Tensor(vars)) => TensorRef::new(self, "result", vars),
            Some(Arg::Scalar(..)) => {
                self.mistake("result()", "leaves its dtype or device open, which bodies can't hold");
                TensorRef::missing(self)
            }
            None => {
                self.mistake("result()", format!("`{}` returns no tensor", self.signature));
                TensorRef::missing(self)
            }
        }
    }

    /// Whether the optional parameter of that name is there.
    pub fn is_given(&self, name: &str) -> Expr<'_> {
        match self.args.given.get(name) {
            Some(value) => Expr::of_params(self, *value, ScalarType::Bool),
            None => {
                self.mistake(format!("is_given({name:?})"), format!("`{}` has no such optional", self.signature));
                self.placeholder(ScalarType::Bool)
            }
        }
    }

    /// The value of a dimension's or stride's symbol, an `int64`.
    pub fn dim(&self, symbol: &str) -> Expr<'_> {
        let value = self.emit(|l| l.symbol(symbol));
        match value {
            Some(value) => Expr::of_params(self, value, ScalarType::Int64),
            None => {
                self.mistake(format!("dim({symbol:?})"), format!("`{}` binds no such symbol", self.signature));
                self.placeholder(ScalarType::Int64)
            }
        }
    }

    /// An integer constant of that type, which has to hold it.
    pub fn int(&self, ty: ScalarType, value: impl TryInto<i128>) -> Expr<'_> {
        let Ok(value) = value.try_into() else {
            self.mistake("int", format!("the number is out of the range of {ty}"));
            return self.placeholder(ty);
        };
        if !ty.is_int() {
            self.mistake("int", format!("{ty} is no integer type"));
            return self.placeholder(ty);
        }
        self.coerce("int", ty, Operand::Int(value))
    }

    /// A `float32` constant.
    pub fn f32(&self, value: f32) -> Expr<'_> {
        self.expr(self.value(|l| l.b.f32(value)), ScalarType::Float32)
    }

    /// A `float64` constant.
    pub fn f64(&self, value: f64) -> Expr<'_> {
        self.expr(self.value(|l| l.b.f64(value)), ScalarType::Float64)
    }

    /// An `int64` constant.
    pub fn i64(&self, value: i64) -> Expr<'_> {
        self.expr(self.value(|l| l.b.i64(value)), ScalarType::Int64)
    }

    /// A truth value.
    pub fn bool(&self, value: bool) -> Expr<'_> {
        self.expr(self.value(|l| l.b.bconst(value)), ScalarType::Bool)
    }
}

impl fmt::Debug for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("signature", &format_args!("{}", self.signature)).finish_non_exhaustive()
    }
}

/// The type of a value of a scalar type inside a body.
fn ir_type(ty: ScalarType) -> Type {
    match ty {
        ScalarType::Bool => Type::Bool,
        _ => memory_type(ty),
    }
}

/// The type of a scalar in memory.
fn memory_type(ty: ScalarType) -> Type {
    abi_param(ty).ty
}
