//! Devices (`DLDevice`, `DLDeviceType`) and their names. Names are spelled as in upstream's Python `Device`. Header:
//! `dlpack.h`. The direct-address rule comes from `container/tensor.h`.

use std::fmt;
use std::str::FromStr;

/// A kind of device (`DLDeviceType`). Unknown numbers are kept unchanged.
#[repr(transparent)]
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct DLDeviceType(pub i32);

macro_rules! device_types {
    ($($(#[$doc:meta])* $name:ident = $value:literal => $text:literal;)*) => {
        impl DLDeviceType {
            $($(#[$doc])* pub const $name: DLDeviceType = DLDeviceType($value);)*

            /// The device types of DLPack, in the order of their numbers.
            pub const ALL: &[DLDeviceType] = &[$(DLDeviceType::$name),*];

            /// Upstream Python's name of the device type; `None` for an unknown number.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }

            fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($text => Some(DLDeviceType($value)),)*
                    "mps" => Some(Self::METAL),
                    "wgpu" => Some(Self::WEBGPU),
                    _ => None,
                }
            }
        }
    };
}

device_types! {
    /// CPU.
    CPU = 1 => "cpu";
    /// CUDA GPU.
    CUDA = 2 => "cuda";
    /// Pinned CPU memory of CUDA.
    CUDA_HOST = 3 => "cuda_host";
    /// OpenCL.
    OPENCL = 4 => "opencl";
    /// Vulkan.
    VULKAN = 7 => "vulkan";
    /// Metal.
    METAL = 8 => "metal";
    /// Verilog simulator.
    VPI = 9 => "vpi";
    /// ROCm GPU.
    ROCM = 10 => "rocm";
    /// Pinned CPU memory of ROCm.
    ROCM_HOST = 11 => "rocm_host";
    /// Extension device.
    EXT_DEV = 12 => "ext_dev";
    /// CUDA managed memory.
    CUDA_MANAGED = 13 => "cuda_managed";
    /// oneAPI unified shared memory.
    ONE_API = 14 => "oneapi";
    /// WebGPU.
    WEBGPU = 15 => "webgpu";
    /// Hexagon.
    HEXAGON = 16 => "hexagon";
    /// MAIA.
    MAIA = 17 => "maia";
    /// Trainium.
    TRN = 18 => "trn";
}

impl DLDeviceType {
    /// True if data pointers on this device are addresses, whose alignment can be checked (`IsDirectAddressDevice`,
    /// container/tensor.h).
    #[inline]
    pub const fn is_direct_address(self) -> bool {
        self.0 <= Self::CUDA_HOST.0
            || self.0 == Self::CUDA_MANAGED.0
            || self.0 == Self::ROCM.0
            || self.0 == Self::ROCM_HOST.0
    }

    /// True if the CPU can read and write this memory with plain loads and stores.
    #[inline]
    pub const fn is_host_accessible(self) -> bool {
        matches!(self, Self::CPU | Self::CUDA_HOST | Self::ROCM_HOST | Self::CUDA_MANAGED)
    }
}

impl fmt::Display for DLDeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "device_type({})", self.0),
        }
    }
}

/// A device name that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseDeviceError {
    /// The part before the colon is not a device type.
    #[error("unknown device type `{0}`")]
    UnknownType(String),
    /// The part after the colon is not a device number.
    #[error("invalid device index `{0}`")]
    InvalidIndex(String),
}

impl FromStr for DLDeviceType {
    type Err = ParseDeviceError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Self::from_name(s).ok_or_else(|| ParseDeviceError::UnknownType(s.to_owned()))
    }
}

/// A device type and the number of the device (`DLDevice`).
#[repr(C)]
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct DLDevice {
    /// The device type.
    pub device_type: DLDeviceType,
    /// The device number, from zero; zero for CPU memory.
    pub device_id: i32,
}

impl DLDevice {
    /// The CPU, `cpu:0`.
    pub const CPU: Self = Self::new(DLDeviceType::CPU, 0);

    /// A device of `device_type` with number `device_id`.
    #[inline]
    pub const fn new(device_type: DLDeviceType, device_id: i32) -> Self {
        Self { device_type, device_id }
    }

    /// The CUDA device with number `device_id`.
    #[inline]
    pub const fn cuda(device_id: i32) -> Self {
        Self::new(DLDeviceType::CUDA, device_id)
    }
}

impl fmt::Display for DLDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.device_type, self.device_id)
    }
}

impl FromStr for DLDevice {
    type Err = ParseDeviceError;

    /// Reads `cuda:1`, or `cuda` for number zero.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let (name, index) = s.split_once(':').unwrap_or((s, "0"));
        let device_type = name.parse()?;
        match index.parse() {
            Ok(device_id) => Ok(Self::new(device_type, device_id)),
            Err(_) => Err(ParseDeviceError::InvalidIndex(index.to_owned())),
        }
    }
}

const _: () = assert!(size_of::<DLDevice>() == 8);

#[cfg(test)]
mod tests {
    use super::{DLDevice, DLDeviceType, ParseDeviceError};

    #[test]
    fn names_round_trip() {
        for code in 0..32 {
            let device_type = DLDeviceType(code);
            if let Some(name) = device_type.name() {
                assert_eq!(name.parse(), Ok(device_type));
            }
        }
        assert_eq!("mps".parse(), Ok(DLDeviceType::METAL));
        assert_eq!("cuda:3".parse(), Ok(DLDevice::cuda(3)));
        assert_eq!("cpu".parse(), Ok(DLDevice::CPU));
        assert_eq!(DLDevice::cuda(2).to_string(), "cuda:2");
        assert_eq!("tpu:0".parse::<DLDevice>(), Err(ParseDeviceError::UnknownType("tpu".into())));
        assert!("cuda:x".parse::<DLDevice>().is_err());
    }

    #[test]
    fn all_are_in_order_and_have_names() {
        assert!(DLDeviceType::ALL.is_sorted_by(|x, y| x.0 < y.0));
        let named: Vec<_> = (-1..64).map(DLDeviceType).filter(|kind| kind.name().is_some()).collect();
        assert_eq!(named, DLDeviceType::ALL);
    }

    #[test]
    fn direct_address_devices() {
        let direct: Vec<i32> = (1..19).filter(|&code| DLDeviceType(code).is_direct_address()).collect();
        assert_eq!(direct, [1, 2, 3, 10, 11, 13]);
    }
}
