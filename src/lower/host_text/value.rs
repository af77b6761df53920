//! The values of names and expressions.

use crate::lower::body::{
    CallArg, CallResult, Caught, DTypeValue, DeviceValue, Expr, Operand, Owned, ParamRef, TensorRef, Variable,
};

/// The value of a name or an expression.
#[derive(Clone)]
pub(super) enum Val<'b, 'a> {
    /// A literal, which takes the type of its place.
    Literal(Operand<'b>),
    Expr(Expr<'b>),
    Tensor(TensorRef<'b>),
    /// A parameter, or a part of one.
    Param(ParamRef<'b>),
    /// A parameter that is passed on as it is: `param(n)`.
    Whole(ParamRef<'b>),
    Result(CallResult<'b>),
    Owned(Owned<'b>),
    Variable(Variable<'b>),
    Caught(Caught<'b, 'a>),
    DType(DTypeValue<'b>),
    Device(DeviceValue<'b>),
    /// A value that can only be passed on.
    Arg(CallArg<'b>),
    /// After an error.
    Missing,
}
