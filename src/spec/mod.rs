//! Signatures: a compiler's description of a function's parameters and result.
//!
//! A [`SignatureBuilder`] makes a [`Signature`] and reports all errors together, each with its path. `Display` writes
//! the text form that error messages show, and `FromStr` parses it. This module doesn't depend on how signatures are
//! checked at run time.

mod builder;
mod check;
mod diagnose;
mod dim;
mod element;
mod error;
mod kernel_arg;
mod launch;
mod location;
mod param;
mod parse_error;
mod path;
mod policy;
mod quote;
mod scalar;
#[cfg(feature = "serde")]
mod serde;
mod signature;
mod span;
mod tensor;
mod text;
mod token;

pub use builder::SignatureBuilder;
pub use check::{MAX_CONTAINER_DEPTH, MAX_DIM_DEPTH, MAX_RANK, MAX_TYPE_DEPTH};
pub(crate) use dim::any_size;
pub use dim::{CompareOp, Constraint, Dim, DimOp, dim};
pub(crate) use element::dtype as named_dtype;
pub use error::{PartError, SignatureError};
pub use kernel_arg::{FloatBits, Interleave, KernelArg, L2Promotion, Swizzle, TensorMap};
pub use launch::{ClusterScheduling, Launch, LaunchFlags, LaunchedSignature, MemorySyncDomain};
pub use location::SourceLocation;
pub use param::{DefaultValue, Param, ParamType};
pub(crate) use parse_error::MAX_ERRORS;
pub use parse_error::{ParseError, SyntaxError, TextPlace};
pub use path::{Part, Path, Step};
pub use policy::DTypePolicy;
pub(crate) use quote::quoted_bytes;
pub use scalar::ScalarType;
pub(crate) use scalar::{Half, ScalarKind};
pub use signature::Signature;
pub use tensor::{Access, DType, Device, DeviceId, Layout, TensorShape, TensorType};
pub(crate) use text::{HostItems, LaunchLocal, Parser, did_you_mean};
pub(crate) use token::{CommentLine, Token, Tokens};
