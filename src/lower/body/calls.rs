//! Calls of TVM FFI functions from a body: callee, arguments, and type of the result.

use std::fmt;
use std::ops::Deref;

use super::args::{Arg, Args};
use super::builder::Body;
use super::dtype_device::{DTypeValue, DeviceValue};
use super::expr::{Expr, Operand, Ops};
use super::function::BodyLowerer;
use super::held::Held;
use super::life::Ended;
use super::param::ParamRef;
use super::scope::Scope;
use super::tensor::TensorRef;
use crate::ir::Value;
use crate::lower::symbol_call::KnownArg;
use crate::spec::{ParamType, ScalarType};
use tvm_ffi_runtime::abi::{DLDataType, DLDevice};

/// An argument of a call in a body.
///
/// Use `into()` to turn numbers, truth values, strings, dtypes, devices, expressions, parameters, tensors, owned values
/// and results of earlier calls into arguments.
#[derive(Clone, Debug)]
pub struct CallArg<'b>(pub(super) ArgKind<'b>);

#[derive(Clone, Debug)]
pub(super) enum ArgKind<'b> {
    None,
    /// A number or truth value.
    Scalar(Operand<'b>),
    Str(String),
    Bytes(Vec<u8>),
    DType(DTypeValue<'b>),
    Device(DeviceValue<'b>),
    Shape(Vec<Operand<'b>>),
    Array(Vec<CallArg<'b>>),
    Param(ParamRef<'b>),
    Tensor(TensorRef<'b>),
    Owned(Owned<'b>),
    /// An owned value that the callee may take over.
    Moved(Owned<'b>),
}

impl<'b> CallArg<'b> {
    /// None.
    pub const NONE: CallArg<'static> = CallArg(ArgKind::None);

    /// Bytes.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        CallArg(ArgKind::Bytes(bytes.into()))
    }

    /// An `ffi.Shape` of integers.
    pub fn shape<O: Into<Operand<'b>>>(sizes: impl IntoIterator<Item = O>) -> Self {
        CallArg(ArgKind::Shape(sizes.into_iter().map(Into::into).collect()))
    }

    /// An `ffi.Array` of values, from a tuple or an array.
    pub fn array(values: impl CallArgs<'b>) -> Self {
        CallArg(ArgKind::Array(values.into_args()))
    }

    /// The argument as far as it is known at compile time.
    pub(super) fn known(&self) -> KnownArg {
        match &self.0 {
            ArgKind::None => KnownArg::None,
            ArgKind::Scalar(Operand::Int(value)) => KnownArg::Int(i64::try_from(*value).ok()),
            ArgKind::Scalar(Operand::Float(_)) => KnownArg::Float,
            ArgKind::Scalar(Operand::Bool(_)) => KnownArg::Bool,
            ArgKind::Scalar(Operand::Expr(expr)) => KnownArg::of(&ParamType::Scalar(expr.ty())),
            ArgKind::Str(_) => KnownArg::Str,
            ArgKind::Bytes(_) => KnownArg::Bytes,
            ArgKind::DType(_) => KnownArg::DType,
            ArgKind::Device(_) => KnownArg::Device,
            ArgKind::Shape(sizes) => KnownArg::Shape(sizes.len()),
            ArgKind::Array(values) => KnownArg::Array(values.len()),
            ArgKind::Param(param) => param.ty().map_or(KnownArg::Unknown, KnownArg::of),
            ArgKind::Tensor(tensor) => tensor.known_arg(),
            ArgKind::Owned(owned) | ArgKind::Moved(owned) => owned.known.clone_arg(),
        }
    }
}

macro_rules! args_from {
    ($($from:ty),*) => {$(
        impl<'b> From<$from> for CallArg<'b> {
            fn from(value: $from) -> Self {
                CallArg(ArgKind::Scalar(value.into()))
            }
        }
    )*};
}
args_from!(i8, i16, i32, i64, u8, u16, u32, u64, usize, isize, f32, f64, bool, Operand<'b>);

impl<'b> From<Expr<'b>> for CallArg<'b> {
    fn from(value: Expr<'b>) -> Self {
        CallArg(ArgKind::Scalar(value.into()))
    }
}

impl From<()> for CallArg<'_> {
    fn from((): ()) -> Self {
        CallArg(ArgKind::None)
    }
}

impl From<&str> for CallArg<'_> {
    fn from(value: &str) -> Self {
        CallArg(ArgKind::Str(value.to_owned()))
    }
}

impl From<String> for CallArg<'_> {
    fn from(value: String) -> Self {
        CallArg(ArgKind::Str(value))
    }
}

impl From<&[u8]> for CallArg<'_> {
    fn from(value: &[u8]) -> Self {
        CallArg::bytes(value)
    }
}

impl From<DLDataType> for CallArg<'_> {
    fn from(value: DLDataType) -> Self {
        CallArg(ArgKind::DType(value.into()))
    }
}

impl From<DLDevice> for CallArg<'_> {
    fn from(value: DLDevice) -> Self {
        CallArg(ArgKind::Device(value.into()))
    }
}

impl<'b> From<DTypeValue<'b>> for CallArg<'b> {
    fn from(value: DTypeValue<'b>) -> Self {
        CallArg(ArgKind::DType(value))
    }
}

impl<'b> From<DeviceValue<'b>> for CallArg<'b> {
    fn from(value: DeviceValue<'b>) -> Self {
        CallArg(ArgKind::Device(value))
    }
}

impl<'b> From<ParamRef<'b>> for CallArg<'b> {
    fn from(value: ParamRef<'b>) -> Self {
        CallArg(ArgKind::Param(value))
    }
}

impl<'b> From<TensorRef<'b>> for CallArg<'b> {
    fn from(value: TensorRef<'b>) -> Self {
        CallArg(ArgKind::Tensor(value))
    }
}

impl<'b> From<Owned<'b>> for CallArg<'b> {
    fn from(value: Owned<'b>) -> Self {
        CallArg(ArgKind::Owned(value))
    }
}

impl<'b> From<CallResult<'b>> for CallArg<'b> {
    fn from(value: CallResult<'b>) -> Self {
        value.owned.into()
    }
}

/// The arguments of a call, or the values of a message: a tuple of values that convert to [`CallArg`], or an array,
/// slice or vector of values of one such type. Without any, write `()`.
pub trait CallArgs<'b> {
    /// The arguments, in order.
    fn into_args(self) -> Vec<CallArg<'b>>;
}

impl<'b, T: Into<CallArg<'b>>, const N: usize> CallArgs<'b> for [T; N] {
    fn into_args(self) -> Vec<CallArg<'b>> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<'b, T: Into<CallArg<'b>>> CallArgs<'b> for Vec<T> {
    fn into_args(self) -> Vec<CallArg<'b>> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<'b, T: Clone + Into<CallArg<'b>>> CallArgs<'b> for &[T] {
    fn into_args(self) -> Vec<CallArg<'b>> {
        self.iter().cloned().map(Into::into).collect()
    }
}

impl<'b, T: Clone + Into<CallArg<'b>>, const N: usize> CallArgs<'b> for &[T; N] {
    fn into_args(self) -> Vec<CallArg<'b>> {
        self.as_slice().into_args()
    }
}

impl<'b, T: Clone + Into<CallArg<'b>>> CallArgs<'b> for &Vec<T> {
    fn into_args(self) -> Vec<CallArg<'b>> {
        self.as_slice().into_args()
    }
}

impl<'b> CallArgs<'b> for () {
    fn into_args(self) -> Vec<CallArg<'b>> {
        Vec::new()
    }
}

macro_rules! tuples {
    ($($($name:ident)*;)*) => {$(
        impl<'b, $($name: Into<CallArg<'b>>),*> CallArgs<'b> for ($($name,)*) {
            #[allow(non_snake_case)] // the type names double as variable names
            fn into_args(self) -> Vec<CallArg<'b>> {
                let ($($name,)*) = self;
                vec![$($name.into()),*]
            }
        }
    )*};
}
tuples! {
    A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H; A B C D E F G H I;
    A B C D E F G H I J; A B C D E F G H I J K; A B C D E F G H I J K L;
}

/// A value owned by a body. It is released at the end of the block that created it, or on any exit from the function.
#[derive(Clone, Copy)]
pub struct Owned<'b> {
    pub(super) body: &'b dyn Ops,
    /// The address of the `TVMFFIAny` in the frame.
    pub(super) any: Value,
    pub(super) scope: Scope,
    pub(super) known: KnownOwned<'b>,
    /// The number of loops that were open when it was created; `None` for a variable, since a variable may be moved
    /// out of any number of times.
    pub(super) loops: Option<usize>,
}

/// The type that an owned value is known to have.
#[derive(Clone, Copy)]
pub(super) enum KnownOwned<'b> {
    Nothing,
    Type(&'b ParamType),
}

impl KnownOwned<'_> {
    fn clone_arg(self) -> KnownArg {
        match self {
            KnownOwned::Nothing => KnownArg::Unknown,
            KnownOwned::Type(ty) => KnownArg::of(ty),
        }
    }
}

impl<'b> Owned<'b> {
    /// Passes the value as an argument that the callee may take over, with an rvalue reference
    /// (`kTVMFFIObjectRValueRef`). As the function's result or as a variable's value, it is always moved. The body
    /// can't use it afterwards.
    pub fn by_move(self) -> CallArg<'b> {
        CallArg(ArgKind::Moved(self))
    }

    /// Returns the value, and records an error if it can't be used here.
    pub(super) fn used(self, operation: &str) -> Self {
        if let Some(ended) = self.ended() {
            const BLOCK: &str = "the value was made inside of a loop or conditional that has ended, and is released; \
                carry it out by a `variable`";
            self.body.note(operation, ended.problem(BLOCK));
        }
        self
    }

    /// Why the value can't be used here; `None` if it can.
    pub(super) fn ended(self) -> Option<Ended> {
        if !self.body.is_open(self.scope) {
            return Some(Ended::Block);
        }
        self.body.emit(|l| l.is_moved(self.any)).then_some(Ended::Moved)
    }

    /// Records that the value is moved.
    pub(super) fn take(self, operation: &str) {
        self.used(operation);
        let (once, fine) = self.body.emit(|l| {
            let fine = l.move_out(self.any);
            (self.loops.is_none_or(|loops| l.exits.loops() <= loops), fine)
        });
        if !once {
            let problem =
                "the value is moved inside of a loop that was begun after it was made; each turn would move it again";
            self.body.note(operation, problem.to_owned());
        } else if !fine {
            self.body.note(operation, PART_OF_THE_NEXT_TURN.to_owned());
        }
    }
}

impl fmt::Debug for Owned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owned({})", self.any)
    }
}

/// The value returned by a call, checked against the type that the body states. It derefs to a [`ParamRef`], so you can
/// access its parts.
#[derive(Clone, Copy)]
pub struct CallResult<'b> {
    pub(super) owned: Owned<'b>,
    pub(super) param: ParamRef<'b>,
}

impl<'b> CallResult<'b> {
    /// The value itself, owned by the body.
    pub fn owned(self) -> Owned<'b> {
        self.owned
    }

    /// The value as a moved argument or result: see [`Owned::by_move`].
    pub fn by_move(self) -> CallArg<'b> {
        self.owned.by_move()
    }
}

impl<'b> Deref for CallResult<'b> {
    type Target = ParamRef<'b>;

    fn deref(&self) -> &ParamRef<'b> {
        &self.param
    }
}

impl fmt::Debug for CallResult<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallResult({:?})", self.param)
    }
}

/// A value that is called as a function.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Callee<'b> {
    /// A parameter of type `Function` or `Any`, or a part of a result.
    Param(ParamRef<'b>),
    /// An owned value.
    Owned(Owned<'b>),
}

impl<'b> From<ParamRef<'b>> for Callee<'b> {
    fn from(param: ParamRef<'b>) -> Self {
        Callee::Param(param)
    }
}

impl<'b> From<Owned<'b>> for Callee<'b> {
    fn from(owned: Owned<'b>) -> Self {
        Callee::Owned(owned)
    }
}

impl<'b> From<CallResult<'b>> for Callee<'b> {
    fn from(result: CallResult<'b>) -> Self {
        Callee::Owned(result.owned)
    }
}

/// The callee of a call.
#[derive(Clone, Debug)]
pub(super) enum CallTarget<'b> {
    Global { name: String, uncached: bool },
    Import { name: String },
    Symbol { name: String },
    Value(Callee<'b>),
}

impl CallTarget<'_> {
    /// The callee's name in messages.
    pub(super) fn name(&self) -> &str {
        match self {
            CallTarget::Global { name, .. } | CallTarget::Import { name } | CallTarget::Symbol { name } => name,
            CallTarget::Value(Callee::Param(param)) => param.path(),
            CallTarget::Value(Callee::Owned(_)) => "a function value",
        }
    }
}

/// A call that isn't made yet: [`returns`](Self::returns) or [`run`](Self::run) makes it.
#[must_use = "the call is made by `returns` or `run`"]
#[derive(Debug)]
pub struct Call<'b> {
    pub(super) body: &'b dyn Ops,
    pub(super) target: CallTarget<'b>,
    pub(super) args: Vec<CallArg<'b>>,
    pub(super) kwargs: Vec<(String, CallArg<'b>)>,
}

impl fmt::Debug for dyn Ops + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Body")
    }
}

impl Body<'_> {
    /// Calls a global function. The function is looked up at the first call, once for the whole library.
    ///
    #[cfg_attr(feature = "_engine", doc = "```")]
    #[cfg_attr(not(feature = "_engine"), doc = "```text")]
    /// use tvm_ffi_codegen::runtime::{self, Function};
    /// use tvm_ffi_codegen::{Engine, Kernel, ScalarType, Signature};
    ///
    /// runtime::registry::set_global("doc.add", Function::from_typed(|a: i64, b: i64| a + b), true)?;
    ///
    /// let signature: Signature = "twice(n: int64) -> int64".parse()?;
    /// let kernel = Kernel::body(|b| {
    ///     let n = b.arg("n");
    ///     b.ret(b.call_global("doc.add", (n, n)).returns(ScalarType::Int64).value());
    /// });
    /// // SAFETY: the body reads no memory.
    /// let twice = unsafe { Engine::new()?.compile(&signature, &kernel)? };
    /// assert_eq!(twice.call((21,))?.cast::<i64>()?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn call_global<'b>(&'b self, name: &str, args: impl CallArgs<'b>) -> Call<'b> {
        self.call_of(CallTarget::Global { name: name.to_owned(), uncached: false }, args)
    }

    /// Calls a function of the library's imports. `TVMFFIEnvModLookupFromImports` finds it at the first call, once for
    /// the whole library.
    pub fn call_import<'b>(&'b self, name: &str, args: impl CallArgs<'b>) -> Call<'b> {
        self.call_of(CallTarget::Import { name: name.to_owned() }, args)
    }

    /// Calls a function by its symbol, `__tvm_ffi_<name>`. The function may be in the same module, in the same engine,
    /// or in an object that is linked later. This is the fastest call. If the function is in the same module, the
    /// arguments are checked against its signature when the module is complete.
    pub fn call_symbol<'b>(&'b self, name: &str, args: impl CallArgs<'b>) -> Call<'b> {
        self.call_of(CallTarget::Symbol { name: name.to_owned() }, args)
    }

    /// Calls a function value: a parameter, or the result of another call.
    pub fn call<'b>(&'b self, function: impl Into<Callee<'b>>, args: impl CallArgs<'b>) -> Call<'b> {
        self.call_of(CallTarget::Value(function.into()), args)
    }

    fn call_of<'b>(&'b self, target: CallTarget<'b>, args: impl CallArgs<'b>) -> Call<'b> {
        Call { body: self, target, args: args.into_args(), kwargs: Vec::new() }
    }
}

impl<'b> Call<'b> {
    /// Looks a global function up at each call instead of once, for functions that are registered again.
    pub fn uncached(mut self) -> Self {
        match &mut self.target {
            CallTarget::Global { uncached, .. } => *uncached = true,
            _ => self.body.note("uncached", "is for calls of global functions".to_owned()),
        }
        self
    }

    /// Adds a keyword argument. Keyword arguments are passed as Python passes them: after the object that
    /// `ffi.GetKwargsObject` returns, names and values alternate.
    pub fn kwarg(mut self, name: &str, value: impl Into<CallArg<'b>>) -> Self {
        self.kwargs.push((name.to_owned(), value.into()));
        self
    }
}

/// Placeholder for the values of a result after an error.
pub(super) fn placeholder<'b>(body: &'b dyn Ops, path: &str, ty: &ParamType, owned: Owned<'b>) -> CallResult<'b> {
    let mut args = Args::of_value(path, ty, body.life());
    body.run(&mut |l: &mut BodyLowerer<'_>| {
        let zero = l.b.i64(0);
        if let Some(ScalarType::Int64) = ty.as_scalar() {
            args.add(path.to_owned(), Arg::Scalar(ScalarType::Int64, zero));
        }
    });
    let args = body.arena().args(args);
    CallResult { owned, param: ParamRef { body, args, node: None } }
}

/// A new owned value, initially None, held from now on.
pub(super) fn new_owned<'b>(body: &'b dyn Ops, known: KnownOwned<'b>) -> Owned<'b> {
    let any = body.value(|l| {
        let any = l.any_slot();
        l.hold(Held::Value(any));
        any
    });
    Owned { body, any, scope: body.scope(), known, loops: None }
}

/// The error for giving a variable a new value while the next turn of a loop uses a part of the old one.
pub(super) const PART_OF_THE_NEXT_TURN: &str =
    "the variable's value goes inside of a loop whose next turn uses a part of it that was made before the loop";
