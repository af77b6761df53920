//! Signatures: what a compiler states of a function.
//!
//! A [`Signature`] is made by a [`SignatureBuilder`], which reports all mistakes at once, each with its path. Its
//! `Display` is the text form that error messages show, and its `FromStr` reads that form back. Nothing here knows how any of it is
//! checked at run time.

mod builder;
mod check;
mod dim;
mod launch;
mod mistake;
mod param;
mod path;
mod place;
mod policy;
mod quote;
mod scalar;
mod signature;
mod span;
mod tensor;
mod text;
mod token;

pub use builder::SignatureBuilder;
pub use check::{MAX_CONTAINER_DEPTH, MAX_DIM_DEPTH, MAX_RANK, MAX_TYPE_DEPTH};
pub use dim::{CompareOp, Constraint, Dim, DimOp, dim};
pub use launch::{
    FloatBits, Interleave, L2Promotion, Launch, LaunchArg, LaunchFlags, LaunchedSignature, Swizzle, TensorMap,
};
pub use mistake::{Mistake, SignatureError};
pub use param::{DefaultValue, Param, ParamType};
pub use path::{Part, Path, Step};
pub use place::Place;
pub use policy::DTypePolicy;
pub use scalar::ScalarType;
pub use signature::Signature;
pub use tensor::{Access, DType, Device, DeviceId, Layout, TensorShape, TensorType};
pub use text::{ParseError, SyntaxError};
