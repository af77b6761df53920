//! What a compiler states of a function: its signature.
//!
//! A [`Signature`] is made by a [`SignatureBuilder`], which reports all mistakes at once, each with its path. Its
//! `Display` is the text form that error messages show, and its `FromStr` reads that form back. Nothing here knows how any of it is checked at run time.

mod builder;
mod signature;
mod text;
mod token;
mod types;

pub use builder::{Mistake, SignatureBuilder, SignatureError};
pub use signature::{Param, ParamType, Signature};
pub use text::{ParseError, SyntaxError};
pub use types::{Device, Dim, Layout, ScalarType, TensorType};
