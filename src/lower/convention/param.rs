//! A C parameter of a kernel in the public API: its name, type and source.

use std::fmt;

use super::c_type::CType;

/// One C parameter of a kernel. `Display` prints it as in the prototype: `float* x`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct KernelParam {
    /// The name in the C prototype. It is unique among the parameters and has no other meaning in C.
    pub name: String,
    /// The type in C.
    pub c_type: CType,
    /// The value that the wrapper passes.
    pub source: ParamSource,
    /// The position among the kernel's C parameters, from 0.
    pub position: usize,
}

impl KernelParam {
    /// A string that identifies the parameter by its meaning. Use it in a compiler to find the kernel's values, because
    /// the C name depends on the other parameters' names and on C's reserved words.
    /// | key | the value |
    /// | --- | --- |
    /// | `x.value`, `x.data`, `s.size`, `x.shape[0]` | a [part](ParamPart) of an argument; `pair[1].data` in a tuple |
    /// | `->.value`, `->.data` | a part of the result; `->[1].data` in a tuple |
    /// | `n` | a dimension variable |
    /// | `x.argument` | the caller's own argument ([`Kernel::with_arguments`](crate::Kernel::with_arguments)) |
    /// | `#2` | a stated parameter ([`Kernel::args`](crate::Kernel::args)), by its position |
    /// | `#handle`, `#args`, `#num_args` | the parameters of convention `packed` |
    ///
    /// ```
    /// use tvm_ffi_codegen::Kernel;
    ///
    /// let signature = "f(s: str, s_size: int64, double: Tensor([n], float32)) -> Tensor([n], float32)".parse()?;
    /// let params = Kernel::symbol("f").parameters(&signature)?;
    /// let names: Vec<_> = params.iter().map(|param| &*param.name).collect();
    /// let keys: Vec<_> = params.iter().map(|param| param.key()).collect();
    /// assert_eq!(names, ["s", "s_size", "s_size_", "p_double", "result", "n"]);
    /// assert_eq!(keys, ["s.data", "s.size", "s_size.value", "double.data", "->.data", "n"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn key(&self) -> String {
        match &self.source {
            ParamSource::Argument(path, part) => format!("{path}.{}", part.key()),
            // the path begins with `result`, which is also a possible parameter name
            ParamSource::Result(path, part) => {
                format!("->{}.{}", path.strip_prefix(RESULT).unwrap_or(path), part.key())
            }
            ParamSource::DimVar { name, .. } => name.clone(),
            ParamSource::Stated(_) => format!("#{}", self.position),
            ParamSource::Handle => format!("#{HANDLE}"),
            ParamSource::Args => format!("#{ARGS}"),
            ParamSource::NumArgs => format!("#{NUM_ARGS}"),
        }
    }

    /// Whether the C parameter is the named parameter of the signature, passed as one value by convention `flat`.
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

/// The value that a kernel receives for a C parameter. `Display` prints a short string for messages: `x.data`, `n, from
/// x.shape[0]`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ParamSource {
    /// A part of an argument, with its path: `x`, or `pair[1]` for an item of a tuple.
    Argument(String, ParamPart),
    /// A part of a tensor that the wrapper has allocated for the result, with its path: `result`, or `result[1]` for an
    /// item of a tuple. Or, as [`ParamPart::Value`], the address that the kernel writes its result to.
    Result(String, ParamPart),
    /// A dimension variable.
    DimVar {
        /// The variable's name in the signature.
        name: String,
        /// The first dimension that is just the variable, or else the first expression with it: `x.shape[0]`. `None` if
        /// it occurs only in elements of containers.
        from: Option<String>,
    },
    /// A parameter that the kernel states ([`Kernel::args`](crate::Kernel::args)), in printed form: `int32(n)`.
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
            ParamSource::DimVar { name, from: Some(from) } => write!(f, "{name}, from {from}"),
            ParamSource::DimVar { name, from: None } => f.write_str(name),
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
    /// The whole value: a scalar, `dtype` or `device` by value, the handle of an object, the address of a value of any
    /// type.
    Value,
    /// Whether an optional value is given: 0 or 1. Values without this parameter use a NULL pointer for None.
    Given,
    /// The address of the first element of a tensor, extent of a shape, byte of a string, or value of an array.
    Data,
    /// The number of extents of a shape, bytes of a string, or values of an array.
    Size,
    /// The byte offset relative to an opaque handle, if a tensor's data is one.
    ByteOffset,
    /// The address of a tensor's `DLTensor`.
    Descriptor,
    /// A memref's first pointer; the same as [`Aligned`](Self::Aligned).
    Allocated,
    /// A memref's second pointer: the address of the first element.
    Aligned,
    /// A memref's offset, always 0.
    Offset,
    /// The size of a memref's dimension.
    Extent(u32),
    /// The stride of a memref's dimension, in elements.
    Stride(u32),
    /// The stream of an `EnvStream` or `Stream`.
    Stream,
    /// The state of an `EnvState`.
    State,
    /// The address of the caller's own argument ([`Kernel::with_arguments`](crate::Kernel::with_arguments)).
    Argument,
}

impl ParamPart {
    /// The part's name in a key.
    fn key(self) -> String {
        let name = match self {
            ParamPart::Value => "value",
            ParamPart::Given => "given",
            ParamPart::Data => "data",
            ParamPart::Size => "size",
            ParamPart::ByteOffset => "byte_offset",
            ParamPart::Descriptor => "descriptor",
            ParamPart::Allocated => "allocated",
            ParamPart::Aligned => "aligned",
            ParamPart::Offset => "offset",
            ParamPart::Extent(d) => return format!("shape[{d}]"),
            ParamPart::Stride(d) => return format!("strides[{d}]"),
            ParamPart::Stream => "stream",
            ParamPart::State => "state",
            ParamPart::Argument => "argument",
        };
        name.to_owned()
    }

    /// Prints the part after the path of the whole: `x.data`.
    fn show(self, path: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamPart::Value | ParamPart::Descriptor | ParamPart::Stream | ParamPart::State => f.write_str(path),
            ParamPart::Given => write!(f, "whether {path} is given"),
            ParamPart::Argument => write!(f, "{path}.argument"),
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
