//! The keys of a `match`, and the constants that its rows compare them with.

use std::fmt;
use std::ops::{Range, RangeFull};

use super::calls::CallResult;
use super::dtype_device::{DTypeValue, DeviceValue};
use super::expr::Expr;
use super::param::ParamRef;
use super::tensor::TensorRef;
use crate::spec::{Device, ParamType, quoted_bytes};
use tvm_ffi_runtime::abi::{DLDataType, DLDevice, DLDeviceType};

/// A key of a [`match_`](super::Body::match_): a value with the name that messages have for it.
#[derive(Clone, Debug)]
pub struct MatchKey<'b> {
    pub(in crate::lower) name: String,
    pub(in crate::lower) value: MatchValue<'b>,
}

impl<'b> MatchKey<'b> {
    /// A key: an integer, a truth value, a dtype, a device, a kind of device ([`MatchValue::DeviceKind`]) or a
    /// parameter of type `str`. Messages print the name, such as `x.dtype`.
    pub fn new(name: impl Into<String>, value: impl Into<MatchValue<'b>>) -> Self {
        MatchKey { name: name.into(), value: value.into() }
    }
}

/// The value of a key.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum MatchValue<'b> {
    /// An integer or a truth value.
    Number(Expr<'b>),
    /// A dtype.
    DType(DTypeValue<'b>),
    /// A device: a kind and a number.
    Device(DeviceValue<'b>),
    /// The kind of a device.
    DeviceKind(DeviceValue<'b>),
    /// A parameter of type `str`, or a result.
    Str(ParamRef<'b>),
}

impl<'b> From<Expr<'b>> for MatchValue<'b> {
    fn from(value: Expr<'b>) -> Self {
        MatchValue::Number(value)
    }
}

impl<'b> From<DTypeValue<'b>> for MatchValue<'b> {
    fn from(value: DTypeValue<'b>) -> Self {
        MatchValue::DType(value)
    }
}

impl<'b> From<DeviceValue<'b>> for MatchValue<'b> {
    fn from(value: DeviceValue<'b>) -> Self {
        MatchValue::Device(value)
    }
}

/// The dtype of a tensor.
impl<'b> From<TensorRef<'b>> for MatchValue<'b> {
    fn from(value: TensorRef<'b>) -> Self {
        MatchValue::DType(value.into())
    }
}

impl<'b> From<ParamRef<'b>> for MatchValue<'b> {
    fn from(value: ParamRef<'b>) -> Self {
        let ty = match value.ty() {
            Some(ParamType::Optional(inner)) => Some(&**inner),
            ty => ty,
        };
        match ty {
            Some(ParamType::Scalar(_)) => MatchValue::Number(value.value()),
            Some(ParamType::DType) => MatchValue::DType(value.into()),
            Some(ParamType::Device) => MatchValue::Device(value.into()),
            _ => MatchValue::Str(value),
        }
    }
}

impl<'b> From<CallResult<'b>> for MatchValue<'b> {
    fn from(value: CallResult<'b>) -> Self {
        (*value).into()
    }
}

/// The pattern of a row of a [`match_`](super::Body::match_) for one key. It prints as host text states it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MatchPattern {
    /// Each value: `_`.
    Any,
    /// An integer.
    Int(i128),
    /// The integers from the start to the end, which is excluded.
    Range(Range<i128>),
    /// A truth value.
    Bool(bool),
    /// A dtype.
    DType(DLDataType),
    /// A device with this kind and this number.
    Device(DLDevice),
    /// A device of this kind.
    DeviceKind(DLDeviceType),
    /// A string.
    Str(String),
}

impl fmt::Display for MatchPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MatchPattern::Any => f.write_str("_"),
            MatchPattern::Int(value) => write!(f, "{value}"),
            MatchPattern::Range(range) => write!(f, "range({}, {})", range.start, range.end),
            MatchPattern::Bool(value) => f.write_str(if *value { "True" } else { "False" }),
            MatchPattern::DType(dtype) => write!(f, "{dtype}"),
            MatchPattern::Device(device) => write!(f, "\"{device}\""),
            MatchPattern::DeviceKind(kind) => write!(f, "\"{}\"", Device::of(*kind)),
            MatchPattern::Str(text) => f.write_str(&quoted_bytes(text.as_bytes())),
        }
    }
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl From<$ty> for MatchPattern {
            fn from(value: $ty) -> Self {
                MatchPattern::Int(value as i128)
            }
        }

        impl From<Range<$ty>> for MatchPattern {
            fn from(range: Range<$ty>) -> Self {
                MatchPattern::Range(range.start as i128..range.end as i128)
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64, usize);

macro_rules! patterns {
    ($($ty:ty => $kind:ident;)*) => {$(
        impl From<$ty> for MatchPattern {
            fn from(value: $ty) -> Self {
                MatchPattern::$kind(value.into())
            }
        }
    )*};
}
patterns! {
    bool => Bool;
    DLDataType => DType;
    DLDevice => Device;
    DLDeviceType => DeviceKind;
    &str => Str;
    String => Str;
}

impl From<RangeFull> for MatchPattern {
    fn from(_: RangeFull) -> Self {
        MatchPattern::Any
    }
}

/// A row of a [`match_`](super::Body::match_): a pattern for each key, and what runs where all hold.
pub struct MatchRow<'r> {
    pub(super) patterns: Vec<MatchPattern>,
    pub(super) then: Box<dyn FnOnce() + 'r>,
}

impl<'r> MatchRow<'r> {
    /// A row. Patterns are constants, ranges of integers, and `..` for each value.
    pub fn new(patterns: impl IntoIterator<Item = MatchPattern>, then: impl FnOnce() + 'r) -> Self {
        MatchRow { patterns: patterns.into_iter().collect(), then: Box::new(then) }
    }
}

impl fmt::Debug for MatchRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MatchRow").field("patterns", &self.patterns).finish_non_exhaustive()
    }
}
