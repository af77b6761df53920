//! Tensors: their dimensions, element type, device and layout.

use std::fmt;

use tvm_ffi_runtime::abi::{DLDataType, DLDeviceType, kDLComplex};

use super::dim::Dim;

/// The dimensions of a tensor.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TensorShape {
    /// This many, of these sizes.
    Ranked(Vec<Dim>),
    /// From none up to [`MAX_RANK`](super::MAX_RANK), of any size.
    Any,
}

impl TensorShape {
    /// The sizes; `None` where the rank is open.
    pub fn dims(&self) -> Option<&[Dim]> {
        match self {
            TensorShape::Ranked(dims) => Some(dims),
            TensorShape::Any => None,
        }
    }

    /// The number of dimensions; `None` where it is open.
    pub fn rank(&self) -> Option<usize> {
        self.dims().map(<[Dim]>::len)
    }
}

impl<D: Into<Dim>, I: IntoIterator<Item = D>> From<I> for TensorShape {
    fn from(dims: I) -> Self {
        TensorShape::Ranked(dims.into_iter().map(Into::into).collect())
    }
}

/// The type of a tensor's elements.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum DType {
    /// This one, or one that the signature's [`DTypePolicy`](super::DTypePolicy) takes for it.
    Exact(DLDataType),
    /// Whatever comes.
    Any,
    /// That which the parameter of this name says. Only in a result.
    Param(String),
}

impl From<DLDataType> for DType {
    fn from(dtype: DLDataType) -> Self {
        DType::Exact(dtype)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DType::Exact(dtype) => dtype.fmt(f),
            DType::Any => f.write_str("any"),
            DType::Param(name) => f.write_str(name),
        }
    }
}

/// Which device of its kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DeviceId {
    /// The same for all tensors of the signature on that kind of device that have no number of their own.
    Shared,
    /// Any, whatever the others'.
    Any,
    /// The one of that number.
    Fixed(i32),
}

/// Where a tensor has to be.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Device {
    /// On a device of that kind.
    Kind(DLDeviceType, DeviceId),
    /// Anywhere, but on the same device as the other tensors that may be anywhere.
    Any,
    /// Where the parameter of this name says. Only in a result.
    Param(String),
}

impl Device {
    /// The CPU, which is where tensors are unless said otherwise.
    pub const CPU: Device = Device::of(DLDeviceType::CPU);
    /// A CUDA device.
    pub const CUDA: Device = Device::of(DLDeviceType::CUDA);

    /// A device of that kind, the same for all tensors that say no more.
    pub const fn of(device_type: DLDeviceType) -> Self {
        Device::Kind(device_type, DeviceId::Shared)
    }

    /// One device, by its number.
    pub const fn numbered(device_type: DLDeviceType, id: i32) -> Self {
        Device::Kind(device_type, DeviceId::Fixed(id))
    }

    /// The kind of device, if it is stated.
    pub const fn kind(&self) -> Option<DLDeviceType> {
        match self {
            Device::Kind(kind, _) => Some(*kind),
            Device::Any | Device::Param(_) => None,
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, id) = match self {
            Device::Kind(kind, id) => (kind, id),
            Device::Any => return f.write_str("any"),
            Device::Param(name) => return f.write_str(name),
        };
        match kind.name() {
            Some(name) => f.write_str(name)?,
            None => write!(f, "device_type_{}", kind.0)?,
        }
        match id {
            DeviceId::Shared => Ok(()),
            DeviceId::Any => f.write_str(":any"),
            DeviceId::Fixed(id) => write!(f, ":{id}"),
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
    /// In any way.
    Any,
}

/// A tensor: an `ffi.Tensor` or a `DLTensor*`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorType {
    /// One size for each dimension.
    pub shape: TensorShape,
    /// The elements' type.
    pub dtype: DType,
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
    pub fn new(shape: impl Into<TensorShape>, dtype: impl Into<DType>) -> Self {
        TensorType {
            shape: shape.into(),
            dtype: dtype.into(),
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

    /// The same with whatever strides come.
    pub fn with_any_strides(mut self) -> Self {
        self.layout = Layout::Any;
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

    /// The elements' type where it is stated.
    pub fn exact_dtype(&self) -> Option<DLDataType> {
        match self.dtype {
            DType::Exact(dtype) => Some(dtype),
            DType::Any | DType::Param(_) => None,
        }
    }

    /// The alignment that is checked, in bytes: as stated, or that of one lane of the element. An open dtype has none of
    /// its own.
    pub fn alignment(&self) -> u32 {
        let natural = |dtype: DLDataType| {
            let bits = u32::from(dtype.bits) / if dtype.code == kDLComplex { 2 } else { 1 };
            if bits.is_power_of_two() && bits >= 8 { bits / 8 } else { 1 }
        };
        self.align.or_else(|| self.exact_dtype().map(natural)).unwrap_or(1)
    }

    /// Whether the data pointer is known to be an opaque handle, so that a byte offset can't be added to it.
    pub fn is_opaque(&self) -> bool {
        self.device.kind().is_some_and(|kind| !kind.is_direct_address())
    }

    /// Whether it leaves open what a kernel has to know of a tensor: rank, dtype, device or strides.
    pub fn is_open(&self) -> bool {
        self.shape.rank().is_none()
            || self.exact_dtype().is_none()
            || self.device.kind().is_none()
            || self.layout == Layout::Any
    }

    /// The stated strides.
    pub fn strides(&self) -> Option<&[Dim]> {
        match &self.layout {
            Layout::Strides(strides) => Some(strides),
            Layout::Contiguous | Layout::Any => None,
        }
    }

    /// Makes numbers of dimensions without symbols.
    pub(super) fn fold_dims(&mut self) {
        if let TensorShape::Ranked(dims) = &mut self.shape {
            dims.iter_mut().for_each(Dim::fold);
        }
        if let Layout::Strides(strides) = &mut self.layout {
            strides.iter_mut().for_each(Dim::fold);
        }
    }

    /// Calls `f` for each size and then each stride that is stated.
    pub fn for_each_dim<'a>(&'a self, f: &mut dyn FnMut(&'a Dim)) {
        self.shape.dims().into_iter().chain(self.strides()).flatten().for_each(f);
    }
}

pub(super) fn write_dims(f: &mut fmt::Formatter<'_>, dims: &[Dim]) -> fmt::Result {
    f.write_str("[")?;
    for (i, dim) in dims.iter().enumerate() {
        let sep = if i == 0 { "" } else { ", " };
        write!(f, "{sep}{dim}")?;
    }
    f.write_str("]")
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tensor(")?;
        match &self.shape {
            TensorShape::Ranked(dims) => write_dims(f, dims)?,
            TensorShape::Any => f.write_str("[...]")?,
        }
        write!(f, ", {}", self.dtype)?;
        match &self.layout {
            Layout::Contiguous => {}
            Layout::Strides(strides) => {
                f.write_str(", strides=")?;
                write_dims(f, strides)?;
            }
            Layout::Any => f.write_str(", strides=any")?,
        }
        match &self.device {
            device if *device == Device::CPU => {}
            device @ Device::Kind(..) => write!(f, ", device=\"{device}\"")?,
            device => write!(f, ", device={device}")?,
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
