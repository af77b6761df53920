//! Arguments of kernels, which a compiler passes for C parameters instead of the arguments of convention `flat`.
//! `text::kernel_arg` parses them.

use std::fmt::{self, Display, Formatter};

use super::dim::Dim;
use super::scalar::ScalarType;

/// An argument of a kernel, native or launched: the value of one C parameter. `docs/reference/launches.md` defines its
/// text form.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum KernelArg {
    /// A parameter of the signature as convention `flat` passes it. It must be a single value: the address of a
    /// tensor's first element including the byte offset, a scalar at its declared width, or a stream.
    Param(String),
    /// A scalar parameter of the signature at another width.
    Cast(String, ScalarType),
    /// An integer expression. A value outside the type's range raises a `ValueError`.
    Int(Dim, ScalarType),
    /// A floating-point number, as the bits of an `f64`.
    Float(FloatBits, ScalarType),
    /// A stride of a tensor parameter in elements, by dimension.
    Stride(String, usize, ScalarType),
    /// The device number of a tensor parameter, an `int32`.
    DeviceId(String),
    /// A null pointer.
    Null,
    /// A struct passed by value. Bytes that no field covers are 0.
    Struct {
        /// The size in bytes.
        size: u32,
        /// The alignment in bytes, a power of two.
        align: u32,
        /// The fields, each with its offset in bytes.
        fields: Vec<(u32, KernelArg)>,
    },
    /// A pointer to device memory that the environment's allocator provides for the launch, with a number of bytes
    /// per block of the grid.
    Scratch {
        /// Bytes per block.
        bytes: Dim,
        /// The alignment in bytes, a power of two; at most 256.
        align: u32,
    },
    /// A `CUtensorMap` of a tensor parameter, by value.
    TensorMap(TensorMap),
}

/// The bits of an `f64`, which support equality and hashing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FloatBits(pub u64);

impl FloatBits {
    /// The bits of a number.
    pub fn new(value: f64) -> Self {
        FloatBits(value.to_bits())
    }

    /// The number with these bits.
    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// A TMA descriptor: how the device copies boxes of a tensor (`cuTensorMapEncodeTiled` of cuda.h). Lists are in the
/// order of the tensor's own dimensions, slowest first; the driver gets them reversed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorMap {
    /// The tensor parameter.
    pub tensor: String,
    /// The sizes of a box, in elements: 1 to 256 each.
    pub box_dims: Vec<Dim>,
    /// The steps between elements of a box, 1 to 8 each. If empty, all are 1.
    pub element_strides: Vec<u32>,
    /// The interleaving of the innermost dimension.
    pub interleave: Interleave,
    /// The swizzling of shared memory.
    pub swizzle: Swizzle,
    /// The granularity of L2 fetches.
    pub l2_promotion: L2Promotion,
    /// Elements out of bounds are NaN, not 0.
    pub nan_fill: bool,
}

/// The interleaving of a TMA descriptor (`CUtensorMapInterleave`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs)] // the names are the header's
pub enum Interleave {
    #[default]
    None,
    Bytes16,
    Bytes32,
}

/// The swizzling of a TMA descriptor (`CUtensorMapSwizzle`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs)] // the names are the header's
pub enum Swizzle {
    #[default]
    None,
    Bytes32,
    Bytes64,
    Bytes128,
}

/// The L2 promotion of a TMA descriptor (`CUtensorMapL2promotion`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs)] // the names are the header's
pub enum L2Promotion {
    #[default]
    None,
    Bytes64,
    Bytes128,
    Bytes256,
}

impl TensorMap {
    /// A descriptor of boxes of a tensor parameter, without interleaving, swizzling and promotion.
    pub fn new<D: Into<Dim>>(tensor: impl Into<String>, box_dims: impl IntoIterator<Item = D>) -> Self {
        TensorMap {
            tensor: tensor.into(),
            box_dims: box_dims.into_iter().map(Into::into).collect(),
            element_strides: Vec::new(),
            interleave: Interleave::None,
            swizzle: Swizzle::None,
            l2_promotion: L2Promotion::None,
            nan_fill: false,
        }
    }
}

/// Displays a single extent as it is, and several in parentheses.
pub(super) struct Extents<'a>(pub &'a [Dim]);

impl Display for Extents<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            [one] => write!(f, "{one}"),
            all => write!(f, "({})", Listed(all)),
        }
    }
}

/// Displays a comma-separated list.
pub(super) struct Listed<'a, T>(pub &'a [T]);

impl<T: Display> Display for Listed<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut sep = "";
        self.0.iter().try_for_each(|part| write!(f, "{}{part}", std::mem::replace(&mut sep, ", ")))
    }
}

impl Display for KernelArg {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            KernelArg::Param(name) if name == "null" || name.ends_with(".device_id") => write!(f, "param({name})"),
            KernelArg::Param(name) => f.write_str(name),
            KernelArg::Cast(name, ty) => write!(f, "cast({name}, {ty})"),
            KernelArg::Int(dim, ty) => write!(f, "{ty}({dim})"),
            KernelArg::Float(bits, ty) => match bits.value() {
                value if value.is_nan() => write!(f, "{ty}(nan)"),
                value => write!(f, "{ty}({value:?})"),
            },
            KernelArg::Stride(name, number, ty) => write!(f, "{ty}({name}.strides[{number}])"),
            KernelArg::DeviceId(name) => write!(f, "{name}.device_id"),
            KernelArg::Null => f.write_str("null"),
            KernelArg::Struct { size, align, fields } => {
                write!(f, "struct(size={size}, align={align}")?;
                fields.iter().try_for_each(|(offset, field)| write!(f, ", {offset}: {field}"))?;
                f.write_str(")")
            }
            KernelArg::Scratch { bytes, align } => write!(f, "scratch({bytes}, align={align})"),
            KernelArg::TensorMap(map) => map.fmt(f),
        }
    }
}

impl Display for TensorMap {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "tensor_map({}, box={}", self.tensor, Extents(&self.box_dims))?;
        match self.element_strides.as_slice() {
            [] => {}
            [one] => write!(f, ", element_strides={one}")?,
            all => write!(f, ", element_strides=({})", Listed(all))?,
        }
        let numbers = [
            ("interleave", self.interleave.bytes()),
            ("swizzle", self.swizzle.bytes()),
            ("l2_promotion", self.l2_promotion.bytes()),
        ];
        numbers
            .into_iter()
            .filter(|(_, bytes)| *bytes != 0)
            .try_for_each(|(name, bytes)| write!(f, ", {name}={bytes}"))?;
        f.write_str(if self.nan_fill { ", fill=nan)" } else { ")" })
    }
}

impl Interleave {
    /// All variants.
    pub const ALL: [Self; 3] = [Interleave::None, Interleave::Bytes16, Interleave::Bytes32];

    /// The size of an interleaved slice in bytes; 0 without interleaving.
    pub const fn bytes(self) -> u32 {
        match self {
            Interleave::None => 0,
            Interleave::Bytes16 => 16,
            Interleave::Bytes32 => 32,
        }
    }
}

impl Swizzle {
    /// All variants.
    pub const ALL: [Self; 4] = [Swizzle::None, Swizzle::Bytes32, Swizzle::Bytes64, Swizzle::Bytes128];

    /// The number of bytes that are swizzled together; 0 without swizzling.
    pub const fn bytes(self) -> u32 {
        match self {
            Swizzle::None => 0,
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            Swizzle::Bytes128 => 128,
        }
    }
}

impl L2Promotion {
    /// All variants.
    pub const ALL: [Self; 4] = [L2Promotion::None, L2Promotion::Bytes64, L2Promotion::Bytes128, L2Promotion::Bytes256];

    /// The number of bytes that are fetched together; 0 without promotion.
    pub const fn bytes(self) -> u32 {
        match self {
            L2Promotion::None => 0,
            L2Promotion::Bytes64 => 64,
            L2Promotion::Bytes128 => 128,
            L2Promotion::Bytes256 => 256,
        }
    }
}
