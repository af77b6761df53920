//! Tensors: dimensions, element type, device and layout.

use std::fmt;

use tvm_ffi_runtime::abi::{DLDataType, DLDeviceType, kDLComplex};

use super::dim::Dim;

/// The dimensions of a tensor.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum TensorShape {
    /// Dimensions with stated sizes.
    Ranked(Vec<Dim>),
    /// Any number of dimensions up to [`MAX_RANK`](super::MAX_RANK), of any size.
    Any,
}

impl TensorShape {
    /// The sizes; `None` if any rank is accepted.
    pub fn dims(&self) -> Option<&[Dim]> {
        match self {
            TensorShape::Ranked(dims) => Some(dims),
            TensorShape::Any => None,
        }
    }

    /// The number of dimensions; `None` if any is accepted.
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
#[non_exhaustive]
pub enum DType {
    /// The stated dtype, or one that the signature's [`DTypePolicy`](super::DTypePolicy) accepts for it.
    Exact(DLDataType),
    /// Any dtype.
    Any,
    /// The dtype passed as the parameter with this name. Only in a result.
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

/// The number of a device among the devices of its kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DeviceId {
    /// The number shared by all tensors of the signature that are on this kind of device and state no number.
    Shared,
    /// Any number, independent of other tensors.
    Any,
    /// A stated number.
    Fixed(i32),
}

/// The device that a tensor must be on.
///
/// `Display` writes the string inside the quotes of `device="..."`, and `FromStr` parses it (except for
/// [`Device::Param`]):
/// ```
/// use tvm_ffi_codegen::{DLDeviceType, Device};
///
/// assert_eq!("cuda:1".parse(), Ok(Device::numbered(DLDeviceType::CUDA, 1)));
/// assert_eq!(Device::CUDA.to_string(), "cuda");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Device {
    /// A device of this kind.
    Kind(DLDeviceType, DeviceId),
    /// Any device, but the same one for all tensors with `Any`.
    Any,
    /// The device passed as the parameter with this name. Only in a result.
    Param(String),
}

impl Device {
    /// The CPU, which is the default device of tensors.
    pub const CPU: Device = Device::of(DLDeviceType::CPU);
    /// A CUDA device.
    pub const CUDA: Device = Device::of(DLDeviceType::CUDA);

    /// A device of that kind. It is the same one for all tensors that don't state a number.
    pub const fn of(device_type: DLDeviceType) -> Self {
        Device::Kind(device_type, DeviceId::Shared)
    }

    /// The device of that kind with that number.
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

/// The layout of a tensor's elements in memory.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Layout {
    /// Contiguous and row-major.
    Contiguous,
    /// One stride for each dimension, in elements.
    Strides(Vec<Dim>),
    /// Any strides.
    Any,
}

/// How a function uses the elements of a tensor argument.
///
/// The wrapper doesn't check this. It is information for callers such as JAX, which allocates what a function writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Access {
    /// The function reads the elements, or the signature states no use of any tensor.
    #[default]
    In,
    /// The function writes all elements without reading them before.
    Out,
    /// The function reads and writes elements.
    InOut,
}

impl Access {
    /// All variants.
    pub const ALL: [Access; 3] = [Access::In, Access::Out, Access::InOut];

    /// The name: `in`, `out` or `inout`.
    pub const fn name(self) -> &'static str {
        match self {
            Access::In => "in",
            Access::Out => "out",
            Access::InOut => "inout",
        }
    }

    /// Whether the function writes elements.
    pub const fn writes(self) -> bool {
        !matches!(self, Access::In)
    }
}

/// The type of a tensor: an `ffi.Tensor` or a `DLTensor*`.
///
/// ```
/// use tvm_ffi_codegen::{DLDataType, Device, TensorType, dim};
///
/// let tensor = TensorType::new([dim("n"), 2 * dim("c")], DLDataType::FLOAT32);
/// let tensor = tensor.with_device(Device::CUDA).with_align(16);
/// assert_eq!(tensor.to_string(), "Tensor([n, 2 * c], float32, device=\"cuda\", align=16)");
/// assert_eq!(tensor.to_string().parse(), Ok(tensor));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
#[must_use]
pub struct TensorType {
    /// The sizes, one for each dimension.
    pub shape: TensorShape,
    /// The elements' type.
    pub dtype: DType,
    /// The device that the data is on.
    pub device: Device,
    /// The layout of the data.
    pub layout: Layout,
    /// The alignment of the first element's address, in bytes; `None` for the element type's natural alignment.
    pub align: Option<u32>,
    /// The caller's unchecked promise that no other argument's memory overlaps this tensor's elements.
    pub noalias: bool,
    /// How the function uses the elements.
    pub access: Access,
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
            access: Access::In,
        }
    }

    /// The same tensor on another device.
    pub fn with_device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// The same tensor with stated strides, in elements.
    pub fn with_strides<D: Into<Dim>>(mut self, strides: impl IntoIterator<Item = D>) -> Self {
        self.layout = Layout::Strides(strides.into_iter().map(Into::into).collect());
        self
    }

    /// The same tensor with any strides.
    pub fn with_any_strides(mut self) -> Self {
        self.layout = Layout::Any;
        self
    }

    /// The same tensor, with the first element's address a multiple of `bytes`.
    pub fn with_align(mut self, bytes: u32) -> Self {
        self.align = Some(bytes);
        self
    }

    /// The same tensor, with the caller's promise that no other argument's memory overlaps its elements, like C's
    /// `restrict`. A body may then be compiled without checks for overlaps at run time.
    pub fn with_noalias(mut self) -> Self {
        self.noalias = true;
        self
    }

    /// The same tensor with a stated use of its elements.
    pub fn with_access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// The elements' type, if it is stated.
    pub fn exact_dtype(&self) -> Option<DLDataType> {
        match self.dtype {
            DType::Exact(dtype) => Some(dtype),
            DType::Any | DType::Param(_) => None,
        }
    }

    /// The alignment to check, in bytes: the stated one, or that of one lane of the element. An open dtype has no
    /// alignment requirement.
    pub fn alignment(&self) -> u32 {
        let natural = |dtype: DLDataType| {
            let bits = u32::from(dtype.bits) / if dtype.code == kDLComplex { 2 } else { 1 };
            if bits.is_power_of_two() && bits >= 8 { bits / 8 } else { 1 }
        };
        self.align.or_else(|| self.exact_dtype().map(natural)).unwrap_or(1)
    }

    /// Whether the data pointer is known to be an opaque handle, to which no byte offset can be added.
    pub fn is_opaque(&self) -> bool {
        self.device.kind().is_some_and(|kind| !kind.is_direct_address())
    }

    /// Whether the type leaves open something that a kernel must know about a tensor: rank, dtype, device or strides.
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

    /// Replaces dimensions without variables by numbers.
    pub(super) fn fold_dims(&mut self) {
        if let TensorShape::Ranked(dims) = &mut self.shape {
            dims.iter_mut().for_each(Dim::fold);
        }
        if let Layout::Strides(strides) = &mut self.layout {
            strides.iter_mut().for_each(Dim::fold);
        }
    }

    /// Calls `f` for each size and then for each stated stride.
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
        if self.access.writes() {
            write!(f, ", {}=True", self.access.name())?;
        }
        f.write_str(")")
    }
}
