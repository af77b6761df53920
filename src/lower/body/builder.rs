//! The builder for writing a body: its values by name, its constants, its errors.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::arena::Arena;
use super::args::{Arg, Args};
use super::expr::{Expr, Operand, Ops};
use super::function::BodyLowerer;
use super::record::Recorder;
use super::scope::Scope;
use super::tensor::TensorRef;
use super::text_names::text_name;
use crate::host::tree::{Location, StatementKind};
use crate::ir::{FuncRef, LocationData, Value};
use crate::lower::error::BodyError;
use crate::spec::{MAX_ERRORS, ParamType, ScalarType, Signature, SourceLocation, TextPlace};

/// A kernel's body under construction. See [`Kernel::body`](crate::Kernel::body).
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
    pub(super) signature: &'a Signature,
    pub(super) args: &'a Args,
    pub(super) arena: &'a Arena,
    pub(super) state: RefCell<BuildState<'a>>,
    /// Records the operations, if the body's text is asked for.
    pub(super) recorder: Option<&'a Recorder>,
}

/// A function created by a body, to be lowered after the body itself.
pub(in crate::lower) struct Closure {
    /// Declared with the prototype of TVM FFI functions.
    pub func: FuncRef,
    pub symbol: String,
    pub signature: Signature,
    pub build: BodyFn,
    /// The types of the captured values.
    pub captured: Vec<ParamType>,
}

impl fmt::Debug for Closure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Closure({})", self.symbol)
    }
}

/// The closure that builds a body.
pub(in crate::lower) type BodyFn = Arc<dyn Fn(&Body<'_>) + Send + Sync>;

/// The state of a body under construction.
pub(super) struct BuildState<'a> {
    pub(super) lowerer: &'a mut dyn LowererAccess,
    pub(super) errors: Vec<BodyError>,
    /// The open blocks of the body, from the outermost to the innermost.
    pub(super) open: Vec<Scope>,
    /// The number of blocks that have been opened so far.
    pub(super) scopes: u32,
    /// The closures created by the body.
    pub(super) closures: Vec<Closure>,
    /// Whether the error for a too large frame has been recorded.
    pub(super) frame_is_full: bool,
    /// The text of the body, and the bytes of the current operation in it.
    pub(super) text: Option<(Arc<str>, Range<usize>)>,
}

impl BuildState<'_> {
    /// Records an error. Of a text there are at most [`MAX_ERRORS`].
    pub(super) fn record(&mut self, operation: &str, problem: String, location: Option<SourceLocation>) {
        let place = self.text.as_ref().map(|(text, span)| Box::new(TextPlace::new(text, span.clone())));
        let operation = if place.is_some() { text_name(operation) } else { operation }.to_owned();
        let error = BodyError { operation, problem, location, place };
        // an operation of a text may become several of the body
        if error.place.is_none() || self.errors.len() < MAX_ERRORS && self.errors.last() != Some(&error) {
            self.errors.push(error);
        }
    }
}

/// The maximum size of a body's frame in bytes: half of the default stack of a Rust thread.
const MOST_FRAME: u64 = 1 << 20;

/// The lowerer as a body sees it, with its lifetime erased.
pub(super) trait LowererAccess {
    fn run(&mut self, f: &mut dyn FnMut(&mut BodyLowerer<'_>));
}

impl LowererAccess for BodyLowerer<'_> {
    fn run(&mut self, f: &mut dyn FnMut(&mut BodyLowerer<'_>)) {
        f(self);
    }
}

impl Ops for Body<'_> {
    fn run(&self, f: &mut dyn FnMut(&mut BodyLowerer<'_>)) {
        let mut frame = 0;
        let mut state = self.state.borrow_mut();
        state.lowerer.run(&mut |l| {
            f(l);
            frame = l.b.frame_bytes();
        });
        let too_large = frame > MOST_FRAME && !std::mem::replace(&mut state.frame_is_full, frame > MOST_FRAME);
        drop(state);
        if too_large {
            let problem = format!("the body's values and arguments take more than {MOST_FRAME} bytes of its frame");
            self.note("frame", problem);
        }
    }

    fn note(&self, operation: &str, problem: String) {
        let mut location = None;
        self.run(&mut |l| location = l.location());
        self.state.borrow_mut().record(operation, problem, location);
    }

    fn scope(&self) -> Scope {
        self.state.borrow().open.last().copied().unwrap_or(Scope::BODY)
    }

    fn arena(&self) -> &Arena {
        self.arena
    }

    fn recorder(&self) -> Option<&Recorder> {
        self.recorder.filter(|recorder| !recorder.is_paused())
    }

    fn is_open(&self, scope: Scope) -> bool {
        // the ids of open scopes ascend
        scope == Scope::BODY || self.state.borrow().open.binary_search_by_key(&scope.0, |open| open.0).is_ok()
    }
}

impl<'a> Body<'a> {
    /// The signature of the function.
    pub(in crate::lower) fn signature(&self) -> &'a Signature {
        self.signature
    }

    /// States the place of the following operations in the body's text.
    pub(in crate::lower) fn set_text(&self, text: &Arc<str>, span: Range<usize>) {
        match &mut self.state.borrow_mut().text {
            Some((_, current)) => *current = span,
            none => *none = Some((Arc::clone(text), span)),
        }
    }

    pub(super) fn emit<R: Default>(&self, f: impl FnOnce(&mut BodyLowerer<'_>) -> R) -> R {
        let ops: &dyn Ops = self;
        ops.emit(f)
    }

    pub(super) fn value(&self, f: impl FnOnce(&mut BodyLowerer<'_>) -> Value) -> Value {
        let ops: &dyn Ops = self;
        ops.value(f)
    }

    /// Records an error in the body.
    pub(in crate::lower) fn error(&self, operation: impl AsRef<str>, problem: impl Into<String>) {
        self.note(operation.as_ref(), problem.into());
    }

    /// Whether there are as many errors as a text reports.
    pub(in crate::lower) fn has_all_errors(&self) -> bool {
        self.state.borrow().errors.len() >= MAX_ERRORS
    }

    pub(super) fn expr(&self, value: Value, ty: ScalarType) -> Expr<'_> {
        if ty.is_half() {
            self.error(ty.name(), "isn't a type of a body's values; those of parameters and results are float32");
            return self.placeholder(ScalarType::Float32);
        }
        Expr::new(self, value, ty)
    }

    /// The recorder, if the operation is to be recorded.
    pub(super) fn recorder(&self) -> Option<&Recorder> {
        Ops::recorder(self)
    }

    /// Records a statement.
    pub(super) fn record(&self, statement: impl FnOnce(&Recorder) -> StatementKind) {
        let ops: &dyn Ops = self;
        ops.record(statement);
    }

    /// Placeholder for a value after an error: zero of that type.
    pub(super) fn placeholder(&self, ty: ScalarType) -> Expr<'_> {
        let ops: &dyn Ops = self;
        ops.zero(ty)
    }

    /// Placeholder for a value of unknown type after an error.
    pub(in crate::lower) fn missing(&self) -> Expr<'_> {
        let ops: &dyn Ops = self;
        ops.missing()
    }

    /// Converts an operand to a value of that type; records an error if it can't.
    pub(in crate::lower) fn coerce<'b>(&'b self, operation: &str, ty: ScalarType, operand: Operand<'b>) -> Expr<'b> {
        let ops: &'b dyn Ops = self;
        ops.coerce(operation, ty, operand)
    }

    /// Writes the inside of a loop or conditional. At its end, the expressions created inside become unusable, the
    /// values owned inside are released, and the source location is restored.
    pub(super) fn inside<R>(&self, write: impl FnOnce() -> R) -> R {
        let before = self.emit(|l| Some((l.exits.depth(), l.b.location())));
        let mut state = self.state.borrow_mut();
        state.scopes += 1;
        let scope = Scope(state.scopes);
        state.open.push(scope);
        drop(state);
        let recorder = self.recorder();
        recorder.inspect(|recorder| recorder.open());
        let result = write();
        recorder.inspect(|recorder| recorder.close());
        self.state.borrow_mut().open.pop();
        if let Some((depth, location)) = before {
            self.emit(|l| {
                l.let_go(depth);
                l.b.set_location(location);
            });
        }
        result
    }

    /// Sets the source location of the following operations: a file, a line and a function in your user's program. It
    /// holds until the next call of `at`, or until the end of the enclosing loop or conditional.
    ///
    /// When an error of a callee or of the body's own checks leaves the function there, the location becomes a line of
    /// its backtrace: `File "model.py", line 3, in forward`. A Python user sees that line in the traceback. Debug
    /// information contains it as well.
    pub fn set_location(&self, file: &str, line: u32, function: &str) {
        let text = [file, function].concat();
        if text.contains(['"', '\n', '\0']) || file.is_empty() || function.is_empty() {
            return self.error("at", "the file or function is empty, or has a quote, a line's end or a NUL in it");
        }
        self.record(|recorder| recorder.location(file, line, function));
        self.emit(|l| {
            let location = LocationData { file: file.to_owned(), line, function: function.to_owned() };
            let location = l.b.module().location(location);
            l.b.set_location(Some(location));
        });
    }

    /// Clears the source location for the following operations.
    pub fn clear_location(&self) {
        self.record(|_| StatementKind::Location(Location::None));
        self.emit(|l| l.b.set_location(None));
    }

    /// The scalar parameter with that name, or at that path in a tuple: `cfg[2][0]`. Use [`param`](Self::param) to find
    /// it by index.
    ///
    /// For strings, bytes, shapes and arrays you get a pointer to the characters, sizes or elements, and `name.size` is
    /// their number. Objects and streams are pointers as well; a dtype or a device is its bits. A tensor whose dtype,
    /// device, number of dimensions or strides the signature leaves open is a pointer to its `DLTensor`.
    pub fn arg(&self, name: &str) -> Expr<'_> {
        match self.args.find(name) {
            Some((_, Arg::Scalar(ty, value))) => self.own_value(name, *value, *ty),
            Some((_, Arg::Tensor(vars))) => match vars.descriptor {
                Some(descriptor) => self.own_value(name, descriptor, ScalarType::Handle),
                None => {
                    self.error(format!("arg({name:?})"), "is a tensor; use `tensor`");
                    self.missing()
                }
            },
            None => {
                self.error(format!("arg({name:?})"), format!("`{}` has no such parameter", self.signature));
                self.missing()
            }
        }
    }

    /// The tensor parameter with that name, or at that path in a tuple.
    pub fn tensor(&self, name: &str) -> TensorRef<'_> {
        match self.args.find(name) {
            Some((path, Arg::Tensor(vars))) => {
                self.recorder().inspect(|recorder| recorder.own_tensor(path, vars));
                TensorRef::new(self, path, vars)
            }
            Some((_, Arg::Scalar(..))) => {
                self.error(format!("tensor({name:?})"), "is a scalar; use `arg`");
                TensorRef::missing(self)
            }
            None => {
                self.error(format!("tensor({name:?})"), format!("`{}` has no such parameter", self.signature));
                TensorRef::missing(self)
            }
        }
    }

    /// The tensor returned by the function.
    pub fn result(&self) -> TensorRef<'_> {
        match self.signature.ret() {
            Some(ParamType::Tuple(_)) => {
                self.error("result()", format!("`{}` returns a Tuple; use `result_item`", self.signature));
                TensorRef::missing(self)
            }
            _ => self.returned(0, "result()"),
        }
    }

    /// The tensor with this index in the `Tuple` returned by the function.
    pub fn result_item(&self, number: usize) -> TensorRef<'_> {
        let call = format!("result_item({number})");
        match self.signature.ret() {
            Some(ParamType::Tuple(_)) => self.returned(number, &call),
            _ => {
                self.error(call, format!("`{}` returns no Tuple", self.signature));
                TensorRef::missing(self)
            }
        }
    }

    /// A value of a parameter, with its name for the recorder.
    fn own_value(&self, name: &str, value: Value, ty: ScalarType) -> Expr<'_> {
        let value = Expr::of_params(self, value, ty);
        self.recorder().inspect(|recorder| recorder.own_value(value, name, self.args.type_at(name)));
        value
    }

    fn returned(&self, number: usize, call: &str) -> TensorRef<'_> {
        match self.args.results.get(number) {
            Some((path, vars)) => {
                let is_tuple = matches!(self.signature.ret(), Some(ParamType::Tuple(_)));
                self.recorder().inspect(|recorder| recorder.returned(is_tuple.then_some(number), vars));
                TensorRef::new(self, path, vars)
            }
            None if number > 0 => {
                self.error(call, format!("`{}` returns {} tensors", self.signature, self.args.results.len()));
                TensorRef::missing(self)
            }
            None => {
                self.error(call, format!("`{}` returns no tensor", self.signature));
                TensorRef::missing(self)
            }
        }
    }

    /// Whether the optional parameter with that name is given.
    pub fn is_given(&self, name: &str) -> Expr<'_> {
        match self.args.given.get(name) {
            Some(value) => {
                let value = Expr::of_params(self, *value, ScalarType::Bool);
                self.recorder().inspect(|recorder| recorder.own_value(value, &format!("{name}.given"), None));
                value
            }
            None => {
                self.error(format!("is_given({name:?})"), format!("`{}` has no such optional", self.signature));
                self.placeholder(ScalarType::Bool)
            }
        }
    }

    /// The value of a dimension variable, an `int64`.
    pub fn dim(&self, name: &str) -> Expr<'_> {
        let value = self.emit(|l| l.var(name));
        match value {
            Some(value) => {
                let value = Expr::of_params(self, value, ScalarType::Int64);
                let is_param = self.signature.type_at(name).is_some();
                self.recorder().inspect(|recorder| recorder.dim(value, name, is_param));
                value
            }
            None => {
                self.error(format!("dim({name:?})"), format!("`{}` binds no such dimension variable", self.signature));
                self.placeholder(ScalarType::Int64)
            }
        }
    }

    /// An integer constant of that type; records an error if the type can't hold it.
    pub fn int(&self, ty: ScalarType, value: impl TryInto<i128>) -> Expr<'_> {
        let Ok(value) = value.try_into() else {
            self.error("int", format!("the number is out of the range of {ty}"));
            return self.placeholder(ty);
        };
        if !ty.is_int() {
            self.error("int", format!("{ty} is no integer type"));
            return self.placeholder(ty);
        }
        self.constant(self.coerce("int", ty, Operand::Int(value)))
    }

    /// A `float32` constant.
    pub fn f32(&self, value: f32) -> Expr<'_> {
        self.constant(self.expr(self.value(|l| l.b.f32(value)), ScalarType::Float32))
    }

    /// A `float64` constant.
    pub fn f64(&self, value: f64) -> Expr<'_> {
        self.constant(self.expr(self.value(|l| l.b.f64(value)), ScalarType::Float64))
    }

    /// An `int64` constant.
    pub fn i64(&self, value: i64) -> Expr<'_> {
        self.constant(self.expr(self.value(|l| l.b.i64(value)), ScalarType::Int64))
    }

    /// A `bool` constant.
    pub fn bool(&self, value: bool) -> Expr<'_> {
        self.constant(self.expr(self.value(|l| l.b.bconst(value)), ScalarType::Bool))
    }

    fn constant<'b>(&'b self, value: Expr<'b>) -> Expr<'b> {
        value.recorded(|recorder| recorder.constant_of(value))
    }
}

impl fmt::Debug for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("signature", &format_args!("{}", self.signature)).finish_non_exhaustive()
    }
}
