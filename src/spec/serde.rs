//! Serializes signatures and their parts as strings in their text form. A string that doesn't follow the form fails
//! with the message of `FromStr`. The text form has no source locations, so they are lost.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

use super::{
    Constraint, DTypePolicy, Device, Dim, KernelArg, Launch, LaunchedSignature, ParamType, ScalarType, Signature,
    TensorType,
};

/// Reads a string, borrowed or owned, with `FromStr`.
struct Text<T> {
    expected: &'static str,
    read: PhantomData<T>,
}

impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the text form of a {}", self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

macro_rules! as_text {
    ($($ty:ident: $what:literal),+ $(,)?) => {$(
        impl Serialize for $ty {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $ty {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Text { expected: $what, read: PhantomData })
            }
        }
    )+};
}

as_text! {
    Constraint: "constraint",
    DTypePolicy: "dtype policy",
    Device: "device",
    Dim: "dimension",
    KernelArg: "kernel argument",
    Launch: "launch",
    LaunchedSignature: "signature with a launch",
    ParamType: "type",
    ScalarType: "scalar type",
    Signature: "signature",
    TensorType: "tensor type",
}
