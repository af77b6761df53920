//! Types of parameters and results, and defaults.

use std::fmt;
use std::hash::{Hash, Hasher};

use tvm_ffi_runtime::abi::{DLDataType, DLDevice};

use super::dim::Dim;
use super::location::Origin;
use super::quote::Quoted;
use super::scalar::ScalarType;
use super::tensor::{Access, Device, TensorType, write_dims};

/// The type of a parameter, or of a result.
///
/// ```
/// use tvm_ffi_codegen::{ParamType, ScalarType};
///
/// let ty: ParamType = "Array[Optional[int64]]".parse()?;
/// assert_eq!(ty, ParamType::array(ParamType::from(ScalarType::Int64).optional()));
/// assert_eq!(ty.to_string(), "Array[Optional[int64]]");
/// # Ok::<(), tvm_ffi_codegen::spec::SyntaxError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ParamType {
    /// A number, truth value or opaque pointer.
    Scalar(ScalarType),
    /// A tensor.
    Tensor(TensorType),
    /// A UTF-8 string.
    Str,
    /// Bytes.
    Bytes,
    /// An element type or its name.
    DType,
    /// A device.
    Device,
    /// An `ffi.Shape`, or integers in an Array or List. The sizes are either these or any number of any sizes.
    Shape(Option<Vec<Dim>>),
    /// Any value.
    Any,
    /// Only None.
    None,
    /// Only this integer.
    Int(i64),
    /// Only this truth value.
    Bool(bool),
    /// An `ffi.Function`.
    Function,
    /// An `ffi.Module`.
    Module,
    /// An object whose type has this key, or derives from a type with this key.
    Object(String),
    /// A value of the inner type, or None.
    Optional(Box<ParamType>),
    /// An `ffi.Array` with exactly these elements, each of its own type.
    Tuple(Vec<ParamType>),
    /// A record, whose fields are parameters by path (`cfg.alpha`). The argument is an object with these fields, an
    /// `ffi.Map` or `ffi.Dict` with exactly these keys, or an `ffi.Array` or `ffi.List` of the fields in order.
    Record {
        /// The name in messages and metadata.
        name: String,
        /// The fields, in order.
        fields: Vec<(String, ParamType)>,
    },
    /// An `ffi.Array` or `ffi.List` of any length.
    Array(Box<ParamType>),
    /// An `ffi.List`, which the function may change.
    List(Box<ParamType>),
    /// An `ffi.Map`: keys and values.
    Map(Box<ParamType>, Box<ParamType>),
    /// An `ffi.Dict`, which the function may change: keys and values.
    Dict(Box<ParamType>, Box<ParamType>),
    /// The current stream: that of the device of the first tensor on a device. The caller passes no argument for it.
    EnvStream,
    /// A stream: None for the one that an [`EnvStream`](Self::EnvStream) is, or the handle of another one, as an
    /// integer or an opaque pointer. The handle 0 is the device's default stream.
    Stream,
    /// The state of the compiler's own runtime: the opaque pointer that the global function with this name returns.
    /// The caller passes no argument for it.
    EnvState(String),
}

impl ParamType {
    /// A value of this type, or None.
    #[must_use]
    pub fn optional(self) -> Self {
        ParamType::Optional(Box::new(self))
    }

    /// An `ffi.Array` of `element`.
    pub fn array(element: impl Into<ParamType>) -> Self {
        ParamType::Array(Box::new(element.into()))
    }

    /// An `ffi.List` of `element`.
    pub fn list(element: impl Into<ParamType>) -> Self {
        ParamType::List(Box::new(element.into()))
    }

    /// An `ffi.Map` of `key`s to `value`s.
    pub fn map(key: impl Into<ParamType>, value: impl Into<ParamType>) -> Self {
        ParamType::Map(Box::new(key.into()), Box::new(value.into()))
    }

    /// An `ffi.Dict` of `key`s to `value`s.
    pub fn dict(key: impl Into<ParamType>, value: impl Into<ParamType>) -> Self {
        ParamType::Dict(Box::new(key.into()), Box::new(value.into()))
    }

    /// An `ffi.Array` with exactly these elements, each of its own type.
    pub fn tuple(items: impl IntoIterator<Item = ParamType>) -> Self {
        ParamType::Tuple(items.into_iter().collect())
    }

    /// A record with these fields, in order.
    ///
    /// ```
    /// use tvm_ffi_codegen::{ParamType, ScalarType};
    ///
    /// let ty = ParamType::record("Config", [("alpha", ScalarType::Float32.into()), ("name", ParamType::Str)]);
    /// assert_eq!(ty.to_string(), r#"Record("Config", alpha: float32, name: str)"#);
    /// assert_eq!(ty.to_string().parse(), Ok(ty));
    /// ```
    pub fn record<N: Into<String>>(name: impl Into<String>, fields: impl IntoIterator<Item = (N, ParamType)>) -> Self {
        let fields = fields.into_iter().map(|(name, ty)| (name.into(), ty)).collect();
        ParamType::Record { name: name.into(), fields }
    }

    /// An object whose type has the key `type_key`, or derives from a type with that key.
    pub fn object(type_key: impl Into<String>) -> Self {
        ParamType::Object(type_key.into())
    }

    /// The opaque pointer that the global function `name` returns.
    pub fn env_state(name: impl Into<String>) -> Self {
        ParamType::EnvState(name.into())
    }

    /// Whether a call passes an argument for a parameter of this type.
    pub fn is_passed(&self) -> bool {
        !matches!(self, ParamType::EnvStream | ParamType::EnvState(_))
    }

    /// Whether only a whole parameter can have this type: neither a part of one, nor another value.
    pub(crate) fn is_of_parameters(&self) -> bool {
        matches!(self, ParamType::Stream) || !self.is_passed()
    }

    /// Whether a parameter of this type may be the current stream of a tensor's device.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self, ParamType::EnvStream | ParamType::Stream)
    }

    /// The scalar type, if this is one.
    pub fn as_scalar(&self) -> Option<ScalarType> {
        match self {
            ParamType::Scalar(ty) => Some(*ty),
            _ => None,
        }
    }

    /// The tensor type, if this is one.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            ParamType::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// The types directly inside this one, in order.
    pub fn inner(&self) -> Vec<&ParamType> {
        match self {
            ParamType::Optional(inner) | ParamType::Array(inner) | ParamType::List(inner) => vec![inner],
            ParamType::Map(key, value) | ParamType::Dict(key, value) => vec![key, value],
            ParamType::Tuple(items) => items.iter().collect(),
            ParamType::Record { fields, .. } => fields.iter().map(|(_, ty)| ty).collect(),
            _ => Vec::new(),
        }
    }

    /// The items of a tuple or the fields of a record, in order, each with the end of its path: `[0]` or `.alpha`. They
    /// are passed individually. Other types have none.
    pub(crate) fn members(&self) -> Vec<(String, &ParamType)> {
        match self {
            ParamType::Tuple(items) => (0..).zip(items).map(|(i, item): (usize, _)| (format!("[{i}]"), item)).collect(),
            ParamType::Record { fields, .. } => fields.iter().map(|(name, ty)| (format!(".{name}"), ty)).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether values of the type consist of values that are passed individually.
    pub(crate) fn has_members(&self) -> bool {
        matches!(self, ParamType::Tuple(_) | ParamType::Record { .. })
    }

    /// Whether the type is a record or has one inside.
    pub(crate) fn has_record(&self) -> bool {
        matches!(self, ParamType::Record { .. }) || self.inner().into_iter().any(ParamType::has_record)
    }

    /// The member that a path begins with, such as `.alpha` or `[0].beta`: its number, its type, and the rest of the
    /// path.
    pub(crate) fn first_member<'p>(&self, path: &'p str) -> Option<(usize, &ParamType, &'p str)> {
        (0..).zip(self.members()).find_map(|(number, (step, member))| {
            let rest = path.strip_prefix(step.as_str())?;
            (rest.is_empty() || rest.starts_with(['.', '['])).then_some((number, member, rest))
        })
    }

    /// The type of the member at the end of a path; of the type itself if the path is empty.
    pub(crate) fn member_at(&self, path: &str) -> Option<&ParamType> {
        if path.is_empty() {
            return Some(self);
        }
        let (_, member, rest) = self.first_member(path)?;
        member.member_at(rest)
    }

    /// Calls `f` for each tensor, from left to right.
    pub fn for_each_tensor<'a>(&'a self, f: &mut dyn FnMut(&'a TensorType)) {
        if let ParamType::Tensor(tensor) = self {
            f(tensor);
        }
        for inner in self.inner() {
            inner.for_each_tensor(f);
        }
    }

    /// How the function uses the tensors' elements; `None` for a type without a tensor. If several tensors are used
    /// in different ways and any is written, it is [`Access::InOut`].
    pub fn access(&self) -> Option<Access> {
        let mut all: Option<Access> = None;
        self.for_each_tensor(&mut |tensor| {
            all = Some(match all {
                Some(access) if access != tensor.access => Access::InOut,
                _ => tensor.access,
            });
        });
        all
    }

    /// Calls `f` for each size and stride, from left to right; for a tensor, sizes come first.
    pub fn for_each_dim<'a>(&'a self, f: &mut dyn FnMut(&'a Dim)) {
        match self {
            ParamType::Tensor(tensor) => tensor.for_each_dim(f),
            ParamType::Shape(Some(dims)) => dims.iter().for_each(f),
            _ => self.inner().into_iter().for_each(|inner| inner.for_each_dim(f)),
        }
    }
}

impl ParamType {
    /// Replaces dimensions without variables by numbers.
    pub(super) fn fold_dims(&mut self) {
        match self {
            ParamType::Tensor(tensor) => tensor.fold_dims(),
            ParamType::Shape(Some(dims)) => dims.iter_mut().for_each(Dim::fold),
            ParamType::Optional(inner) | ParamType::Array(inner) | ParamType::List(inner) => inner.fold_dims(),
            ParamType::Map(key, value) | ParamType::Dict(key, value) => {
                key.fold_dims();
                value.fold_dims();
            }
            ParamType::Tuple(items) => items.iter_mut().for_each(ParamType::fold_dims),
            ParamType::Record { fields, .. } => fields.iter_mut().for_each(|(_, ty)| ty.fold_dims()),
            _ => {}
        }
    }
}

impl From<ScalarType> for ParamType {
    fn from(ty: ScalarType) -> Self {
        ParamType::Scalar(ty)
    }
}

impl From<TensorType> for ParamType {
    fn from(ty: TensorType) -> Self {
        ParamType::Tensor(ty)
    }
}

fn write_types(f: &mut fmt::Formatter<'_>, name: &str, types: &[&ParamType]) -> fmt::Result {
    write!(f, "{name}[")?;
    for (i, ty) in types.iter().enumerate() {
        let sep = if i == 0 { "" } else { ", " };
        write!(f, "{sep}{ty}")?;
    }
    f.write_str("]")
}

impl fmt::Display for ParamType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            ParamType::Scalar(ty) => return ty.fmt(f),
            ParamType::Tensor(ty) => return ty.fmt(f),
            ParamType::Shape(Some(dims)) => {
                f.write_str("Shape(")?;
                write_dims(f, dims)?;
                return f.write_str(")");
            }
            ParamType::Int(value) => return write!(f, "Int({value})"),
            ParamType::Bool(value) => return write!(f, "Bool({})", if *value { "True" } else { "False" }),
            ParamType::Object(key) => return write!(f, "Object(\"{key}\")"),
            ParamType::EnvState(name) => return write!(f, "EnvState(\"{name}\")"),
            ParamType::Record { name, fields } => {
                write!(f, "Record(\"{name}\"")?;
                fields.iter().try_for_each(|(name, ty)| write!(f, ", {name}: {ty}"))?;
                return f.write_str(")");
            }
            ParamType::Optional(_) => return write_types(f, "Optional", &self.inner()),
            ParamType::Tuple(_) => return write_types(f, "Tuple", &self.inner()),
            ParamType::Array(_) => return write_types(f, "Array", &self.inner()),
            ParamType::List(_) => return write_types(f, "List", &self.inner()),
            ParamType::Map(..) => return write_types(f, "Map", &self.inner()),
            ParamType::Dict(..) => return write_types(f, "Dict", &self.inner()),
            ParamType::Str => "str",
            ParamType::Bytes => "bytes",
            ParamType::DType => "dtype",
            ParamType::Device => "device",
            ParamType::Shape(None) => "Shape",
            ParamType::Any => "Any",
            ParamType::None => "None",
            ParamType::Function => "Function",
            ParamType::Module => "Module",
            ParamType::EnvStream => "EnvStream",
            ParamType::Stream => "Stream",
        };
        f.write_str(name)
    }
}

/// The value of a parameter that a call omits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum DefaultValue {
    /// None.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A string; for a parameter of type `bytes`, its UTF-8 encoding.
    Str(String),
    /// An element type.
    DType(DLDataType),
    /// A device.
    Device(DLDevice),
}

impl DefaultValue {
    /// A key for equality: numbers are equal if their bits are, so a NaN equals itself.
    fn key(&self) -> (u8, u64, &str) {
        match self {
            DefaultValue::None => (0, 0, ""),
            DefaultValue::Bool(value) => (1, u64::from(*value), ""),
            DefaultValue::Int(value) => (2, *value as u64, ""),
            DefaultValue::Float(value) => (3, value.to_bits(), ""),
            DefaultValue::Str(text) => (4, 0, text),
            DefaultValue::DType(v) => (5, u64::from(v.code) | u64::from(v.bits) << 8 | u64::from(v.lanes) << 16, ""),
            DefaultValue::Device(v) => (6, u64::from(v.device_type.0 as u32) | u64::from(v.device_id as u32) << 32, ""),
        }
    }
}

impl PartialEq for DefaultValue {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for DefaultValue {}

impl Hash for DefaultValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Display for DefaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefaultValue::None => f.write_str("None"),
            DefaultValue::Bool(value) => f.write_str(if *value { "True" } else { "False" }),
            DefaultValue::Int(value) => write!(f, "{value}"),
            DefaultValue::Float(value) if value.is_nan() => f.write_str("nan"),
            DefaultValue::Float(value) => write!(f, "{value:?}"),
            DefaultValue::Str(text) => Quoted(text).fmt(f),
            DefaultValue::DType(dtype) => write!(f, "\"{dtype}\""),
            DefaultValue::Device(device) => {
                write!(f, "\"{}\"", Device::numbered(device.device_type, device.device_id))
            }
        }
    }
}

macro_rules! default_from {
    ($($variant:ident($from:ty);)*) => {
        $(
            impl From<$from> for DefaultValue {
                fn from(value: $from) -> Self {
                    DefaultValue::$variant(value.into())
                }
            }
        )*
    };
}
default_from! {
    Bool(bool);
    Int(i64);
    Int(i32);
    Float(f64);
    Str(&str);
    Str(String);
    DType(DLDataType);
    Device(DLDevice);
}

/// A named parameter, added with [`SignatureBuilder::param`](super::SignatureBuilder::param).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Param {
    /// The parameter's name, unique in the signature.
    pub name: String,
    /// The parameter's type.
    pub ty: ParamType,
    /// The value if the call omits the parameter. If it has one, all later parameters have one too.
    pub default: Option<DefaultValue>,
    /// The parameter's location in the source.
    pub(super) origin: Origin,
}

impl Param {
    /// Converts the default to the parameter's own type if they are compatible: a number to a float, or a name to a
    /// dtype. All NaNs become the same NaN, as they share one text form.
    pub(super) fn settle_default(&mut self) {
        let Some(default) = &mut self.default else { return };
        let ty = match &self.ty {
            ParamType::Optional(inner) => inner,
            ty => ty,
        };
        let settled = match (ty, &*default) {
            (ParamType::Scalar(ty), DefaultValue::Int(value)) if ty.is_float() => {
                Some(DefaultValue::Float(*value as f64))
            }
            (_, DefaultValue::Float(value)) if value.is_nan() => Some(DefaultValue::Float(f64::NAN)),
            (ParamType::DType, DefaultValue::Str(name)) => name.parse().ok().map(DefaultValue::DType),
            _ => None,
        };
        if let Some(settled) = settled {
            *default = settled;
        }
    }

    /// Whether a call passes an argument for it.
    pub fn is_passed(&self) -> bool {
        self.ty.is_passed()
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.ty)?;
        match &self.default {
            Some(default) => write!(f, " = {default}"),
            None => Ok(()),
        }
    }
}
