//! Types of parameters: scalars, and tensors with their dimensions, device and layout.

use std::fmt;

use tvm_ffi_runtime::abi::{DLDataType, DLDeviceType};

/// A scalar parameter or result, named as in the text form.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // the names are the field's own
pub enum ScalarType {
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float32,
    Float64,
    Bool,
    /// An opaque pointer (`void*`); `None` gives NULL.
    Handle,
}

impl ScalarType {
    /// Every scalar type.
    pub const ALL: [ScalarType; 12] = [
        ScalarType::Int8,
        ScalarType::Int16,
        ScalarType::Int32,
        ScalarType::Int64,
        ScalarType::UInt8,
        ScalarType::UInt16,
        ScalarType::UInt32,
        ScalarType::UInt64,
        ScalarType::Float32,
        ScalarType::Float64,
        ScalarType::Bool,
        ScalarType::Handle,
    ];

    /// Its name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            ScalarType::Int8 => "int8",
            ScalarType::Int16 => "int16",
            ScalarType::Int32 => "int32",
            ScalarType::Int64 => "int64",
            ScalarType::UInt8 => "uint8",
            ScalarType::UInt16 => "uint16",
            ScalarType::UInt32 => "uint32",
            ScalarType::UInt64 => "uint64",
            ScalarType::Float32 => "float32",
            ScalarType::Float64 => "float64",
            ScalarType::Bool => "bool",
            ScalarType::Handle => "handle",
        }
    }

    /// A signed integer.
    pub const fn is_signed_int(self) -> bool {
        matches!(self, ScalarType::Int8 | ScalarType::Int16 | ScalarType::Int32 | ScalarType::Int64)
    }

    /// An unsigned integer; `bool` is none.
    pub const fn is_unsigned_int(self) -> bool {
        matches!(self, ScalarType::UInt8 | ScalarType::UInt16 | ScalarType::UInt32 | ScalarType::UInt64)
    }

    /// An integer of either sign.
    pub const fn is_int(self) -> bool {
        self.is_signed_int() || self.is_unsigned_int()
    }

    /// `float32` or `float64`.
    pub const fn is_float(self) -> bool {
        matches!(self, ScalarType::Float32 | ScalarType::Float64)
    }

    /// Width of a value in bits, as a C compiler stores it.
    pub const fn bits(self) -> u32 {
        match self {
            ScalarType::Int8 | ScalarType::UInt8 | ScalarType::Bool => 8,
            ScalarType::Int16 | ScalarType::UInt16 => 16,
            ScalarType::Int32 | ScalarType::UInt32 | ScalarType::Float32 => 32,
            ScalarType::Int64 | ScalarType::UInt64 | ScalarType::Float64 | ScalarType::Handle => 64,
        }
    }

    /// The least and the greatest value of an integer of less than 64 bits; `None` for other types.
    pub const fn narrow_range(self) -> Option<(i64, i64)> {
        match self.bits() {
            64.. => None,
            bits if self.is_signed_int() => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
            bits if self.is_unsigned_int() => Some((0, (1 << bits) - 1)),
            _ => None,
        }
    }

    /// The scalar type that holds one element of `dtype`, if there is one.
    pub fn of_dtype(dtype: DLDataType) -> Option<ScalarType> {
        let all = [
            (DLDataType::INT8, ScalarType::Int8),
            (DLDataType::INT16, ScalarType::Int16),
            (DLDataType::INT32, ScalarType::Int32),
            (DLDataType::INT64, ScalarType::Int64),
            (DLDataType::UINT8, ScalarType::UInt8),
            (DLDataType::UINT16, ScalarType::UInt16),
            (DLDataType::UINT32, ScalarType::UInt32),
            (DLDataType::UINT64, ScalarType::UInt64),
            (DLDataType::FLOAT32, ScalarType::Float32),
            (DLDataType::FLOAT64, ScalarType::Float64),
            (DLDataType::BOOL, ScalarType::Bool),
        ];
        all.into_iter().find(|(d, _)| *d == dtype).map(|(_, s)| s)
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The size of a dimension, or a stride in elements.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Dim {
    /// A fixed number.
    Const(i64),
    /// A symbol: its first occurrence binds it, each later one must be equal.
    Symbol(String),
}

impl From<i64> for Dim {
    fn from(size: i64) -> Self {
        Dim::Const(size)
    }
}

impl From<i32> for Dim {
    fn from(size: i32) -> Self {
        Dim::Const(i64::from(size))
    }
}

impl From<&str> for Dim {
    fn from(name: &str) -> Self {
        Dim::Symbol(name.to_owned())
    }
}

impl From<String> for Dim {
    fn from(name: String) -> Self {
        Dim::Symbol(name)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Const(size) => write!(f, "{size}"),
            Dim::Symbol(name) => f.write_str(name),
        }
    }
}

fn write_list(f: &mut fmt::Formatter<'_>, dims: &[Dim]) -> fmt::Result {
    f.write_str("[")?;
    for (i, dim) in dims.iter().enumerate() {
        let sep = if i == 0 { "" } else { ", " };
        write!(f, "{sep}{dim}")?;
    }
    f.write_str("]")
}

/// Where a tensor has to be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Device {
    /// The kind of device.
    pub device_type: DLDeviceType,
    /// The device's number; `None` for any, the same for all tensors of that kind in one signature.
    pub id: Option<i32>,
}

impl Device {
    /// The CPU, which is where tensors are unless said otherwise.
    pub const CPU: Device = Device { device_type: DLDeviceType::CPU, id: None };
    /// A CUDA device.
    pub const CUDA: Device = Device { device_type: DLDeviceType::CUDA, id: None };

    /// Any device of that kind.
    pub const fn any(device_type: DLDeviceType) -> Self {
        Device { device_type, id: None }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.device_type.name() {
            Some(name) => f.write_str(name)?,
            None => write!(f, "device_type_{}", self.device_type.0)?,
        }
        match self.id {
            Some(id) => write!(f, ":{id}"),
            None => Ok(()),
        }
    }
}

/// How a tensor's elements lie in memory.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Layout {
    /// Compact, row-major.
    Contiguous,
    /// One stride for each dimension, in elements.
    Strides(Vec<Dim>),
}

/// A tensor parameter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorType {
    /// One entry for each dimension; empty for a rank of 0.
    pub shape: Vec<Dim>,
    /// The element's type, matched exactly.
    pub dtype: DLDataType,
    /// Where the data is.
    pub device: Device,
    /// How the data lies.
    pub layout: Layout,
    /// Alignment of the first element's address, in bytes; `None` for the element's own.
    pub align: Option<u32>,
    /// No other argument's memory overlaps this one's elements. The caller's promise, which isn't checked.
    pub noalias: bool,
}

impl TensorType {
    /// A contiguous tensor on the CPU.
    pub fn new<D: Into<Dim>>(shape: impl IntoIterator<Item = D>, dtype: DLDataType) -> Self {
        TensorType {
            shape: shape.into_iter().map(Into::into).collect(),
            dtype,
            device: Device::CPU,
            layout: Layout::Contiguous,
            align: None,
            noalias: false,
        }
    }

    /// The same on another device.
    pub fn on(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// The same with stated strides, in elements.
    pub fn with_strides<D: Into<Dim>>(mut self, strides: impl IntoIterator<Item = D>) -> Self {
        self.layout = Layout::Strides(strides.into_iter().map(Into::into).collect());
        self
    }

    /// The same with the first element's address a multiple of `bytes`.
    pub fn aligned(mut self, bytes: u32) -> Self {
        self.align = Some(bytes);
        self
    }

    /// The same with the caller's promise that no other argument's memory overlaps its elements, as C's `restrict`. A body
    /// may then be compiled without looking for overlaps at run time.
    pub fn noalias(mut self) -> Self {
        self.noalias = true;
        self
    }

    /// The alignment that is checked, in bytes: as stated, or that of one lane of the element.
    pub fn alignment(&self) -> u32 {
        self.align.unwrap_or_else(|| {
            let complex = self.dtype.code == tvm_ffi_runtime::abi::kDLComplex;
            let bits = u32::from(self.dtype.bits) / if complex { 2 } else { 1 };
            if bits.is_power_of_two() && bits >= 8 { bits / 8 } else { 1 }
        })
    }

    /// Whether the data pointer is an opaque handle, so that a byte offset can't be added to it.
    pub fn is_opaque(&self) -> bool {
        !self.device.device_type.is_direct_address()
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tensor(")?;
        write_list(f, &self.shape)?;
        write!(f, ", {}", self.dtype)?;
        if let Layout::Strides(strides) = &self.layout {
            f.write_str(", strides=")?;
            write_list(f, strides)?;
        }
        if self.device != Device::CPU {
            write!(f, ", device=\"{}\"", self.device)?;
        }
        if let Some(align) = self.align {
            write!(f, ", align={align}")?;
        }
        if self.noalias {
            f.write_str(", noalias=True")?;
        }
        f.write_str(")")
    }
}
