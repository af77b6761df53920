//! A C parameter of a kernel as callers see it: its name, type and source.

use std::fmt;

use super::c_type::CType;

/// One C parameter of a kernel. Shown, it is as the prototype has it: `float* x`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct KernelParam {
    /// The name in the C prototype. No other parameter has it, and C has no other meaning for it.
    pub name: String,
    /// The type in C.
    pub c_type: CType,
    /// The value that the wrapper passes.
    pub source: ParamSource,
}

impl KernelParam {
    /// Whether the C parameter is a parameter of the signature, by its name, that convention `flat` passes as one value.
    pub(in crate::lower) fn is_value_of(&self, name: &str) -> bool {
        match &self.source {
            ParamSource::Argument(path, part) => {
                path == name
                    && matches!(part, ParamPart::Value | ParamPart::Data | ParamPart::Stream | ParamPart::State)
            }
            ParamSource::Result(path, ParamPart::Data) => path == name,
            _ => false,
        }
    }
}

impl fmt::Display for KernelParam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.c_type, self.name)
    }
}

/// The value that a kernel gets for a C parameter. Shown, it is a short text for messages: `x.data`, `n, from x.shape[0]`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ParamSource {
    /// A part of an argument, by its path: `x`, and `pair[1]` for an item of a tuple.
    Argument(String, ParamPart),
    /// A part of a tensor that the wrapper has allocated for the result, by its path: `result`, and `result[1]` for an item of a tuple. Or, as
    /// [`ParamPart::Value`], the place that the kernel writes its result to.
    Result(String, ParamPart),
    /// A symbol of dimensions.
    Symbol {
        /// The symbol's name in the signature.
        name: String,
        /// The first place that states it by itself, or else in an expression: `x.shape[0]`. `None` where only elements of containers do.
        from: Option<String>,
    },
    /// A parameter that the kernel states ([`Kernel::args`](crate::Kernel::args)), as its text has it: `int32(n)`.
    Stated(String),
    /// The function's handle, of convention `packed`.
    Handle,
    /// The address of the arguments, of convention `packed`.
    Args,
    /// The number of arguments, of convention `packed`.
    NumArgs,
}

impl fmt::Display for ParamSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamSource::Argument(path, part) => part.show(path, f),
            ParamSource::Result(path, part) => part.show(path, f),
            ParamSource::Symbol { name, from: Some(from) } => write!(f, "{name}, from {from}"),
            ParamSource::Symbol { name, from: None } => f.write_str(name),
            ParamSource::Stated(text) => f.write_str(text),
            ParamSource::Handle => f.write_str(HANDLE),
            ParamSource::Args => f.write_str(ARGS),
            ParamSource::NumArgs => f.write_str(NUM_ARGS),
        }
    }
}

/// A part of an argument, or of the result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ParamPart {
    /// All of it: a scalar, `dtype` or `device` by value, the handle of an object, the address of a value of any type.
    Value,
    /// Whether an optional value is given: 0 or 1. Without it, a pointer that is NULL says that the value isn't.
    Given,
    /// The address of the first element of a tensor, extent of a shape, byte of a text, or value of an array.
    Data,
    /// The number of extents of a shape, bytes of a text, or values of an array.
    Size,
    /// The byte offset behind the opaque handle that is a tensor's data.
    ByteOffset,
    /// The address of a tensor's `DLTensor`.
    Descriptor,
    /// A memref's first pointer, which is [`Aligned`](Self::Aligned) too.
    Allocated,
    /// A memref's second pointer: the address of the first element.
    Aligned,
    /// A memref's offset, which is 0.
    Offset,
    /// The size of a memref's dimension.
    Extent(u32),
    /// The stride of a memref's dimension, in elements.
    Stride(u32),
    /// The stream of an `EnvStream`.
    Stream,
    /// The state of an `EnvState`.
    State,
}

impl ParamPart {
    /// The part behind the path of the whole: `x.data`.
    fn show(self, path: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamPart::Value | ParamPart::Descriptor | ParamPart::Stream | ParamPart::State => f.write_str(path),
            ParamPart::Given => write!(f, "whether {path} is given"),
            ParamPart::Data | ParamPart::Allocated | ParamPart::Aligned => write!(f, "{path}.data"),
            ParamPart::Size => write!(f, "{path}.size"),
            ParamPart::ByteOffset => write!(f, "{path}.byte_offset"),
            ParamPart::Offset => write!(f, "{path}.offset"),
            ParamPart::Extent(d) => write!(f, "{path}.shape[{d}]"),
            ParamPart::Stride(d) => write!(f, "{path}.strides[{d}]"),
        }
    }
}

pub(super) const RESULT: &str = "result";
pub(super) const HANDLE: &str = "handle";
pub(super) const ARGS: &str = "args";
pub(super) const NUM_ARGS: &str = "num_args";
