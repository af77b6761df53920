//! Calls of TVM FFI functions from a body, as the body states them: callee, arguments, type of the result.

use std::fmt;
use std::ops::Deref;

use super::args::{Arg, Args};
use super::builder::Body;
use super::expr::{Expr, Operand, Ops};
use super::function::BodyLowerer;
use super::held::Held;
use super::param::ParamRef;
use super::scope::Scope;
use super::tensor::TensorRef;
use crate::ir::Value;
use crate::lower::symbol_call::KnownArg;
use crate::spec::{ParamType, ScalarType};
use tvm_ffi_runtime::abi::{DLDataType, DLDevice};

/// An argument of a call that a body makes.
///
/// Numbers, truth values, strings, dtypes and devices become arguments by `into()`, as expressions, parameters, tensors, owned values and results of
/// earlier calls do.
#[derive(Clone, Debug)]
pub struct CallArg<'b>(pub(super) ArgKind<'b>);

#[derive(Clone, Debug)]
pub(super) enum ArgKind<'b> {
    None,
    /// A number or truth value.
    Scalar(Operand<'b>),
    Str(String),
    Bytes(Vec<u8>),
    DType(DLDataType),
    Device(DLDevice),
    /// The bits of a dtype or a device, as a parameter of that type has them.
    DTypeBits(Expr<'b>),
    DeviceBits(Expr<'b>),
    Shape(Vec<Operand<'b>>),
    Array(Vec<CallArg<'b>>),
    Param(ParamRef<'b>),
    Tensor(TensorRef<'b>),
    Owned(Owned<'b>),
    /// An owned value that the callee takes over, if it wants to.
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

    /// An `ffi.Array` of values: a tuple, or an array.
    pub fn array(values: impl CallArgs<'b>) -> Self {
        CallArg(ArgKind::Array(values.into_args()))
    }

    /// What is known of the argument before the code runs.
    pub(super) fn known(&self) -> KnownArg {
        match &self.0 {
            ArgKind::None => KnownArg::None,
            ArgKind::Scalar(Operand::Int(value)) => KnownArg::Int(i64::try_from(*value).ok()),
            ArgKind::Scalar(Operand::Float(_)) => KnownArg::Float,
            ArgKind::Scalar(Operand::Bool(_)) => KnownArg::Bool,
            ArgKind::Scalar(Operand::Expr(expr)) => KnownArg::of(&ParamType::Scalar(expr.ty())),
            ArgKind::Str(_) => KnownArg::Str,
            ArgKind::Bytes(_) => KnownArg::Bytes,
            ArgKind::DType(_) | ArgKind::DTypeBits(_) => KnownArg::DType,
            ArgKind::Device(_) | ArgKind::DeviceBits(_) => KnownArg::Device,
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
        CallArg(ArgKind::DType(value))
    }
}

impl From<DLDevice> for CallArg<'_> {
    fn from(value: DLDevice) -> Self {
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

/// The arguments of a call: a tuple of values that each become a [`CallArg`], or an array, slice or vector of `CallArg`s.
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

impl<'b> CallArgs<'b> for &[CallArg<'b>] {
    fn into_args(self) -> Vec<CallArg<'b>> {
        self.to_vec()
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
            #[allow(non_snake_case)] // the names of the types serve for the values
            fn into_args(self) -> Vec<CallArg<'b>> {
                let ($($name,)*) = self;
                vec![$($name.into()),*]
            }
        }
    )*};
}
tuples! {
    A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H; A B C D E F G H I; A B C D E F G H I J;
    A B C D E F G H I J K; A B C D E F G H I J K L;
}

/// A value that a body owns: it is released when the block of the text ends that made it, or when the function is left, whichever way.
#[derive(Clone, Copy)]
pub struct Owned<'b> {
    pub(super) body: &'b dyn Ops,
    /// The address of the `TVMFFIAny` in the frame.
    pub(super) any: Value,
    pub(super) scope: Scope,
    pub(super) known: KnownOwned<'b>,
    /// How many loops were being written when it was made.
    pub(super) loops: usize,
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
    /// The value as an argument that the callee may take over, by an rvalue reference (`kTVMFFIObjectRValueRef`); as the function's result, or as a
    /// variable's value, it goes over in any case. The body can't use it afterwards.
    pub fn moved(self) -> CallArg<'b> {
        CallArg(ArgKind::Moved(self))
    }

    /// The same, after a look at whether it may be used here.
    pub(super) fn used(self, operation: &str) -> Self {
        if !self.body.is_open(self.scope) {
            let problem = "the value was made inside of a loop or conditional that has ended, and is released; carry it out by a `variable`";
            self.body.note(operation, problem.to_owned());
        }
        let moved = self.body.emit(|l| l.moved.contains(&self.any));
        if moved {
            self.body.note(operation, "the value has been moved".to_owned());
        }
        self
    }

    /// Notes that the value is moved.
    pub(super) fn take(self, operation: &str) {
        self.used(operation);
        let repeated = self.body.emit(|l| {
            l.moved.push(self.any);
            l.exits.loops() > self.loops
        });
        if repeated {
            let problem =
                "the value is moved inside of a loop that was begun after it was made; each turn would move it again";
            self.body.note(operation, problem.to_owned());
        }
    }
}

impl fmt::Debug for Owned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owned({})", self.any)
    }
}

/// The value that a call has returned, of the type that the body has stated. It derefs to a [`ParamRef`], which has its parts.
#[derive(Clone, Copy)]
pub struct CallResult<'b> {
    pub(super) owned: Owned<'b>,
    pub(super) param: ParamRef<'b>,
}

impl<'b> CallResult<'b> {
    /// The value itself, which the body owns.
    pub fn owned(self) -> Owned<'b> {
        self.owned
    }

    /// The value as an argument or result that is moved: see [`Owned::moved`].
    pub fn moved(self) -> CallArg<'b> {
        self.owned.moved()
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

/// A value that may be a function, to be called.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Callee<'b> {
    /// A parameter of the type `Function`, or `Any`, or part of a result.
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

/// The function that a call calls.
#[derive(Clone, Debug)]
pub(super) enum Target<'b> {
    Global { name: String, each_time: bool },
    Import { name: String },
    Symbol { name: String },
    Value(Callee<'b>),
}

impl Target<'_> {
    /// The callee's name in messages.
    pub(super) fn name(&self) -> &str {
        match self {
            Target::Global { name, .. } | Target::Import { name } | Target::Symbol { name } => name,
            Target::Value(Callee::Param(param)) => param.path(),
            Target::Value(Callee::Owned(_)) => "a function value",
        }
    }
}

/// A call on its way: [`returns`](Self::returns) or [`run`](Self::run) makes it.
#[must_use = "the call is made by `returns` or `run`"]
#[derive(Debug)]
pub struct Call<'b> {
    pub(super) body: &'b dyn Ops,
    pub(super) target: Target<'b>,
    pub(super) args: Vec<CallArg<'b>>,
    pub(super) kwargs: Vec<(String, CallArg<'b>)>,
}

impl fmt::Debug for dyn Ops + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Body")
    }
}

impl Body<'_> {
    /// A call of a global function. The function is looked up at the first call, once for the whole library.
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
        self.call_of(Target::Global { name: name.to_owned(), each_time: false }, args)
    }

    /// A call of a function of the library's imports, which `TVMFFIEnvModLookupFromImports` finds at the first call, once for the whole library.
    pub fn call_import<'b>(&'b self, name: &str, args: impl CallArgs<'b>) -> Call<'b> {
        self.call_of(Target::Import { name: name.to_owned() }, args)
    }

    /// A call of a function by its symbol, `__tvm_ffi_<name>`: of the same module, of the same engine, or of an object that is linked later. It is
    /// the fastest call. A function of the same module is checked when the module is complete: it has to accept such arguments.
    pub fn call_symbol<'b>(&'b self, name: &str, args: impl CallArgs<'b>) -> Call<'b> {
        self.call_of(Target::Symbol { name: name.to_owned() }, args)
    }

    /// A call of a function that is a value: a parameter, or the result of another call.
    pub fn call<'b>(&'b self, function: impl Into<Callee<'b>>, args: impl CallArgs<'b>) -> Call<'b> {
        self.call_of(Target::Value(function.into()), args)
    }

    fn call_of<'b>(&'b self, target: Target<'b>, args: impl CallArgs<'b>) -> Call<'b> {
        Call { body: self, target, args: args.into_args(), kwargs: Vec::new() }
    }
}

impl<'b> Call<'b> {
    /// Looks a global function up at each call, and not once: for functions that are registered again.
    pub fn each_time(mut self) -> Self {
        match &mut self.target {
            Target::Global { each_time, .. } => *each_time = true,
            _ => self.body.note("each_time", "is for calls of global functions".to_owned()),
        }
        self
    }

    /// Adds an argument by keyword, as Python passes them: behind the object that `ffi.GetKwargsObject` gives, name and value in turn.
    pub fn kwarg(mut self, name: &str, value: impl Into<CallArg<'b>>) -> Self {
        self.kwargs.push((name.to_owned(), value.into()));
        self
    }
}

/// The values of a result after a mistake.
pub(super) fn placeholder<'b>(body: &'b dyn Ops, path: &str, ty: &ParamType, owned: Owned<'b>) -> CallResult<'b> {
    let scope = body.scope();
    let mut args = Args::of_value(path, ty, scope);
    body.run(&mut |l: &mut BodyLowerer<'_>| {
        let zero = l.b.i64(0);
        if let Some(ScalarType::Int64) = ty.as_scalar() {
            args.add(path.to_owned(), Arg::Scalar(ScalarType::Int64, zero));
        }
    });
    let args = body.arena().args(args);
    CallResult { owned, param: ParamRef { body, args, node: None } }
}

/// A new owned value, None at first, which is held from now on.
pub(super) fn new_owned<'b>(body: &'b dyn Ops, known: KnownOwned<'b>) -> Owned<'b> {
    let any = body.value(|l| {
        let any = l.any_slot();
        l.hold(Held::Value(any));
        any
    });
    Owned { body, any, scope: body.scope(), known, loops: Owned::VARIABLE }
}

impl Owned<'_> {
    /// In place of a number of loops: the value is a variable's, and may be moved out of it any number of times.
    pub(super) const VARIABLE: usize = usize::MAX;
}
