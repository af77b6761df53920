//! How a kernel is called: its convention and result, and the names and types of its C parameters for a signature
//! (`params`).

pub(super) mod c_names;
pub(super) mod c_type;
pub(super) mod param;
pub(super) mod params;

use std::fmt;
use std::str::FromStr;

use crate::names::{self, UnknownName};
use crate::spec::{ParamType, TensorType};

/// The C result of a native kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum KernelReturn {
    /// `void`: the kernel can't fail.
    Nothing,
    /// `int32_t`: 0 for success. Any other value fails the call with the error that the kernel raised. If the
    /// signature's result is a scalar, dtype or device, the kernel writes it through a pointer, the last parameter.
    Status,
    /// The value of the signature's result.
    Value,
}

impl KernelReturn {
    const ALL: &[KernelReturn] = &[KernelReturn::Nothing, KernelReturn::Status, KernelReturn::Value];

    /// The name, as the command line and the Python package have it.
    pub fn name(self) -> &'static str {
        match self {
            KernelReturn::Nothing => "nothing",
            KernelReturn::Status => "status",
            KernelReturn::Value => "value",
        }
    }
}

impl FromStr for KernelReturn {
    type Err = UnknownName;

    /// Parses [`KernelReturn::name`].
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        names::find(text, Self::ALL, Self::name)
    }
}

/// The calling convention of a native kernel (`docs/reference/contract.md`, C11).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Convention {
    /// Data pointers and scalars in order, then each symbol as `int64_t`.
    #[default]
    Flat,
    /// A `DLTensor*` for each tensor; no symbols.
    DlTensor,
    /// The arguments that MLIR passes for a ranked memref, for each tensor: two pointers, the offset, the sizes, the
    /// strides; no symbols.
    MemRef,
    /// The four arguments of the TVM FFI ABI.
    Packed,
}

impl Convention {
    /// All conventions.
    pub const ALL: &'static [Convention] =
        &[Convention::Flat, Convention::DlTensor, Convention::MemRef, Convention::Packed];

    /// The convention's name on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Convention::Flat => "flat",
            Convention::DlTensor => "dltensor",
            Convention::MemRef => "memref",
            Convention::Packed => "packed",
        }
    }

    /// How the convention passes a tensor.
    pub(in crate::lower) fn form(self, tensor: &TensorType) -> TensorForm {
        match self {
            Convention::Flat if tensor.is_open() => TensorForm::Descriptor,
            Convention::Flat | Convention::Packed => TensorForm::Data,
            Convention::DlTensor => TensorForm::Descriptor,
            Convention::MemRef => TensorForm::MemRef,
        }
    }
}

impl fmt::Display for Convention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Convention {
    type Err = UnknownName;

    /// Parses [`Convention::name`].
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        names::find(text, Self::ALL, Self::name)
    }
}

/// How a tensor is passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) enum TensorForm {
    /// The data pointer; for opaque handles also the byte offset.
    Data,
    /// A `DLTensor*`.
    Descriptor,
    /// A ranked memref.
    MemRef,
}

/// Whether a type's first C parameter is a pointer that is never NULL. NULL can then represent None.
pub(in crate::lower) fn has_null(ty: &ParamType) -> bool {
    matches!(
        ty,
        ParamType::Tensor(_)
            | ParamType::Str
            | ParamType::Bytes
            | ParamType::Shape(_)
            | ParamType::Function
            | ParamType::Module
            | ParamType::Object(_)
            | ParamType::Array(_)
            | ParamType::List(_)
            | ParamType::Map(..)
            | ParamType::Dict(..)
    )
}

/// Whether the kernel writes an owned result through a `TVMFFIAny*`.
pub(in crate::lower) fn writes_result(ret: &ParamType) -> bool {
    !returns_value(ret) && !returns_tensors(ret)
}

/// Whether the wrapper allocates the result, one tensor or several, for the kernel to fill.
pub(in crate::lower) fn returns_tensors(ret: &ParamType) -> bool {
    matches!(ret, ParamType::Tensor(_) | ParamType::Tuple(_))
}

/// Whether the kernel returns its result as a C value.
pub(in crate::lower) fn returns_value(ret: &ParamType) -> bool {
    matches!(ret, ParamType::Scalar(_) | ParamType::DType | ParamType::Device)
}
