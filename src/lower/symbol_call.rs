//! Calls of functions by symbol, and the checks that are possible once the module is complete.

use crate::spec::{DType, DTypePolicy, Device, ParamType, ScalarKind, ScalarType, Signature, SourceLocation};
use tvm_ffi_runtime::abi::{DLDataType, DLDeviceType};

/// A call of a function by symbol.
#[derive(Clone, Debug)]
pub(super) struct SymbolCall {
    /// The name of the calling function.
    pub caller: String,
    /// The name of the called function.
    pub callee: String,
    /// The known facts about each argument; `None` if even their number is unknown, as in a call with keywords.
    pub args: Option<Vec<KnownArg>>,
    /// The source location of the call, if the body stated it.
    pub location: Option<SourceLocation>,
}

/// The facts about an argument that are known at compile time.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum KnownArg {
    /// Nothing.
    Unknown,
    None,
    Bool,
    /// An integer, with its value if it is a constant.
    Int(Option<i64>),
    Float,
    Handle,
    Str,
    Bytes,
    DType,
    Device,
    Shape(usize),
    /// An array of values, with their number.
    Array(usize),
    Function,
    Tensor(KnownTensor),
}

/// The facts about a tensor that are known at compile time.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct KnownTensor {
    pub rank: Option<usize>,
    pub dtype: Option<DLDataType>,
    pub device: Option<DLDeviceType>,
}

impl KnownArg {
    /// The known facts about a value of a stated type.
    pub(super) fn of(ty: &ParamType) -> Self {
        match ty {
            ParamType::Scalar(ty) => match ty.kind() {
                ScalarKind::Signed | ScalarKind::Unsigned => KnownArg::Int(None),
                ScalarKind::Half(_) | ScalarKind::Float32 | ScalarKind::Float64 => KnownArg::Float,
                ScalarKind::Bool => KnownArg::Bool,
                ScalarKind::Handle => KnownArg::Handle,
            },
            ParamType::Bool(_) => KnownArg::Bool,
            ParamType::Int(value) => KnownArg::Int(Some(*value)),
            ParamType::None => KnownArg::None,
            ParamType::Str => KnownArg::Str,
            ParamType::Bytes => KnownArg::Bytes,
            ParamType::DType => KnownArg::DType,
            ParamType::Device => KnownArg::Device,
            ParamType::Tuple(items) => KnownArg::Array(items.len()),
            ParamType::Function => KnownArg::Function,
            ParamType::Tensor(tensor) => KnownArg::Tensor(KnownTensor {
                rank: tensor.shape.rank(),
                dtype: tensor.exact_dtype(),
                device: tensor.device.kind(),
            }),
            _ => KnownArg::Unknown,
        }
    }

    fn name(&self) -> String {
        match self {
            KnownArg::Unknown => "an unknown value".to_owned(),
            KnownArg::None => "None".to_owned(),
            KnownArg::Bool => "bool".to_owned(),
            KnownArg::Int(Some(value)) => format!("the int {value}"),
            KnownArg::Int(None) => "int".to_owned(),
            KnownArg::Float => "float".to_owned(),
            KnownArg::Handle => "a handle".to_owned(),
            KnownArg::Str => "str".to_owned(),
            KnownArg::Bytes => "bytes".to_owned(),
            KnownArg::DType => "a dtype".to_owned(),
            KnownArg::Device => "a device".to_owned(),
            KnownArg::Shape(len) => format!("a Shape of {len} sizes"),
            KnownArg::Array(len) => format!("an Array of {len} values"),
            KnownArg::Function => "a Function".to_owned(),
            KnownArg::Tensor(tensor) => {
                let mut text = "a tensor".to_owned();
                if let Some(rank) = tensor.rank {
                    text.push_str(&format!(" of {rank} dimensions"));
                }
                if let Some(dtype) = tensor.dtype {
                    text.push_str(&format!(" of {dtype}"));
                }
                text
            }
        }
    }

    /// Whether the argument can't be a value of the type.
    fn never_is(&self, ty: &ParamType, signature: &Signature) -> bool {
        use KnownArg as K;
        match ty {
            ParamType::Any => false,
            ParamType::Optional(inner) => *self != K::None && self.never_is(inner, signature),
            _ if *self == K::Unknown => false,
            ParamType::Scalar(ty) => match ty.kind() {
                ScalarKind::Signed | ScalarKind::Unsigned => match self {
                    K::Int(Some(value)) => !fits(*ty, *value),
                    K::Int(None) | K::Bool => false,
                    _ => true,
                },
                ScalarKind::Half(_) | ScalarKind::Float32 | ScalarKind::Float64 => {
                    !matches!(self, K::Float | K::Int(_) | K::Bool)
                }
                ScalarKind::Bool => !matches!(self, K::Bool | K::Int(_)),
                ScalarKind::Handle => !matches!(self, K::Handle | K::None),
            },
            ParamType::Int(wanted) => !matches!(self, K::Int(value) if value.is_none_or(|value| value == *wanted)),
            ParamType::Bool(_) => *self != K::Bool,
            ParamType::None => *self != K::None,
            ParamType::Str => *self != K::Str,
            ParamType::Bytes => !matches!(self, K::Bytes | K::Str),
            ParamType::DType => !matches!(self, K::DType | K::Str),
            ParamType::Device => *self != K::Device,
            ParamType::Shape(dims) => match self {
                K::Shape(len) | K::Array(len) => dims.as_ref().is_some_and(|dims| dims.len() != *len),
                _ => true,
            },
            ParamType::Tuple(items) => !matches!(self, K::Array(len) if *len == items.len()),
            ParamType::Record { fields, .. } => !matches!(self, K::Array(len) if *len == fields.len()),
            ParamType::Array(_) => !matches!(self, K::Array(_)),
            ParamType::Function => *self != K::Function,
            ParamType::Module | ParamType::List(_) | ParamType::Map(..) | ParamType::Dict(..) => true,
            ParamType::Object(_) => !matches!(self, K::Function | K::Tensor(_) | K::Array(_) | K::Shape(_)),
            ParamType::Tensor(wanted) => {
                let K::Tensor(known) = self else { return true };
                let rank = known.rank.zip(wanted.shape.rank()).is_some_and(|(known, wanted)| known != wanted);
                let dtype = match (&wanted.dtype, known.dtype) {
                    (DType::Exact(exact), Some(dtype)) => {
                        signature.dtype_policy() == DTypePolicy::EXACT && *exact != dtype
                    }
                    _ => false,
                };
                let device = match (&wanted.device, known.device) {
                    (Device::Kind(kind, _), Some(device)) => *kind != device,
                    _ => false,
                };
                rank || dtype || device
            }
            ParamType::Stream => !matches!(self, K::Unknown | K::None | K::Int(_) | K::Handle),
            ParamType::EnvStream | ParamType::EnvState(_) => false,
        }
    }
}

fn fits(ty: ScalarType, value: i64) -> bool {
    match (ty.bits(), ty.is_signed_int()) {
        (64, true) => true,
        (64, false) => value >= 0,
        (bits, true) => (-(1i64 << (bits - 1))..1i64 << (bits - 1)).contains(&value),
        (bits, false) => (0..1i64 << bits).contains(&value),
    }
}

impl SymbolCall {
    /// Why the callee rejects the call for all possible argument values; `None` if it may accept it.
    pub(super) fn problem(&self, callee: &Signature) -> Option<String> {
        let args = self.args.as_ref()?;
        let (min, max) = callee.arity();
        if !(min..=max).contains(&args.len()) {
            let expected = if min == max { max.to_string() } else { format!("{min} to {max}") };
            return Some(format!("`{callee}` takes {expected} arguments, got {}", args.len()));
        }
        let wrong = callee.passed().zip(args).find(|(param, arg)| arg.never_is(&param.ty, callee))?;
        let (param, arg) = wrong;
        Some(format!("`{callee}` takes {} for {}, got {}", param.ty, param.name, arg.name()))
    }
}
