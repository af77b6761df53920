//! Problems of a kernel's convention and of its C result.

use super::arg::ArgProblem;
use super::parts::joined;
use crate::spec::{ParamType, TensorType};

/// Why the convention of a kernel can't pass a part of the signature.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConventionProblem {
    /// The kernel's stated arguments have problems; this lists all of them.
    #[error("{}", joined(.0))]
    Args(Vec<ArgProblem>),
    /// The kernel states its arguments, but its convention isn't `flat`.
    #[error("states its args, but only a kernel of convention flat can")]
    ArgsOfOtherConvention,
    /// A `memref` has a rank, and the tensor has any.
    #[error("{tensor} has any rank")]
    AnyRank {
        /// The tensor.
        tensor: Box<TensorType>,
    },
    /// A `memref` has the address of its data, and the tensor has a handle.
    #[error("{tensor} has an opaque handle for data")]
    OpaqueData {
        /// The tensor.
        tensor: Box<TensorType>,
    },
    /// A `memref` has the address of its data, and on some devices the tensor has a handle.
    #[error("{tensor} may have an opaque handle for data")]
    PerhapsOpaqueData {
        /// The tensor.
        tensor: Box<TensorType>,
    },
    /// The kernel gets the caller's argument of this name, and a call doesn't pass such an argument.
    #[error("it takes the caller's argument `{0}`, but a call doesn't pass it")]
    UnknownArgument(String),
    /// A kernel of convention `packed` gets some of the caller's arguments a second time.
    #[error("it passes all of the caller's arguments already")]
    AllArguments,
    /// Convention `packed` has only the caller's arguments, and the wrapper allocates a returned tensor.
    #[error("a tensor that the wrapper allocates has no place among the arguments")]
    ReturnedTensor,
}

/// How a kernel's C result and the signature's result differ.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReturnProblem {
    /// The kernel returns a value, and the signature none.
    #[error("returns a value, and the signature returns nothing")]
    UnexpectedValue,
    /// A kernel of convention `packed` returns a status.
    #[error("has to return a status, as its convention says")]
    StatusOfConvention,
    /// Without a kernel, a function returns nothing.
    #[error("is missing: the signature returns {ty}, and only a kernel can make it")]
    NoKernel {
        /// The signature's result.
        ty: Box<ParamType>,
    },
    /// The kernel returns neither the value nor a status.
    #[error("has to return {ty}, as the signature does, or a status and write it")]
    NoValue {
        /// The signature's result.
        ty: Box<ParamType>,
    },
    /// The kernel writes its result, and doesn't return a status.
    #[error("has to return a status, as it writes its {ty}")]
    NoStatus {
        /// The signature's result.
        ty: Box<ParamType>,
    },
    /// The kernel returns a value, and gets the result as a parameter.
    #[error("returns a value, and its {ty} is passed to it")]
    PassedResult {
        /// The signature's result.
        ty: Box<ParamType>,
    },
    /// C functions are made of bodies.
    #[error("isn't a body, as a C function's kernel has to be")]
    NoBody,
}
