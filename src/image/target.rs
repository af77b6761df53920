//! Architectures of devices, and NVIDIA's in particular.

use std::fmt;
use std::str::FromStr;

use super::amd_target::AmdTarget;

/// The architecture that code in an image is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum GpuTarget {
    /// An NVIDIA architecture: `sm_90a`, `compute_80`.
    Cuda(CudaTarget),
    /// An AMD architecture: `gfx90a`.
    Amd(AmdTarget),
}

/// The NVIDIA architecture that code in an image is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub struct CudaTarget {
    /// The compute capability: ten times the major number plus the minor number. 90 for `sm_90a`.
    pub capability: u32,
    /// Features that later architectures may lack.
    pub features: ArchFeatures,
    /// Whether the code is PTX, which a driver also compiles for later architectures.
    pub is_virtual: bool,
}

/// Features of one architecture, or of a family.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum ArchFeatures {
    /// None: `sm_90`.
    #[default]
    Portable,
    /// Features of a family: `sm_100f`.
    Family,
    /// Features of one architecture: `sm_90a`.
    Architecture,
}

impl GpuTarget {
    /// The architecture, if it is NVIDIA's.
    pub fn cuda(self) -> Option<CudaTarget> {
        match self {
            GpuTarget::Cuda(target) => Some(target),
            GpuTarget::Amd(_) => None,
        }
    }

    /// The architecture, if it is AMD's.
    pub fn amd(self) -> Option<AmdTarget> {
        match self {
            GpuTarget::Cuda(_) => None,
            GpuTarget::Amd(target) => Some(target),
        }
    }

    /// The maximum shared memory of a block in bytes, static and dynamic together; `None` for an unknown
    /// architecture.
    pub fn max_shared_memory(self) -> Option<u32> {
        match self {
            GpuTarget::Cuda(target) => target.max_shared_memory(),
            GpuTarget::Amd(target) => target.max_shared_memory(),
        }
    }
}

impl fmt::Display for GpuTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GpuTarget::Cuda(target) => target.fmt(f),
            GpuTarget::Amd(target) => target.fmt(f),
        }
    }
}

impl FromStr for GpuTarget {
    type Err = ();

    /// Parses `sm_90a`, `compute_80` or `gfx90a`.
    fn from_str(text: &str) -> Result<Self, ()> {
        match text.starts_with("gfx") {
            true => text.parse().map(GpuTarget::Amd),
            false => text.parse().map(GpuTarget::Cuda),
        }
    }
}

impl CudaTarget {
    /// Whether a device with this compute capability runs the code (CUDA C++ Programming Guide, binary and PTX
    /// compatibility). Machine code needs the same major number and at least its minor number. PTX needs at least its
    /// compute capability. Code with features of an architecture runs only on that architecture.
    pub fn runs_on(self, major: u32, minor: u32) -> bool {
        let capability = 10 * major + minor;
        let same_family = self.capability / 10 == major && capability >= self.capability;
        match self.features {
            ArchFeatures::Architecture => capability == self.capability,
            ArchFeatures::Family => same_family,
            ArchFeatures::Portable if self.is_virtual => capability >= self.capability,
            ArchFeatures::Portable => same_family,
        }
    }

    /// The maximum shared memory of a block in bytes, static and dynamic together (CUDA C++ Programming Guide,
    /// technical specifications per compute capability); `None` for an unknown architecture.
    pub fn max_shared_memory(self) -> Option<u32> {
        let kib = match self.capability {
            50..=69 => 48,
            70..=74 => 96,
            75..=79 => 64,
            80 | 87 => 163,
            86 | 89 => 99,
            90 | 100 | 101 | 103 | 110 => 227,
            120 | 121 => 99,
            _ => return None,
        };
        Some(kib << 10)
    }
}

impl fmt::Display for CudaTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let features = match self.features {
            ArchFeatures::Portable => "",
            ArchFeatures::Family => "f",
            ArchFeatures::Architecture => "a",
        };
        let kind = if self.is_virtual { "compute" } else { "sm" };
        write!(f, "{kind}_{}{features}", self.capability)
    }
}

impl FromStr for CudaTarget {
    type Err = ();

    /// Parses `sm_90a` or `compute_80`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (is_virtual, rest) = match text.strip_prefix("sm_") {
            Some(rest) => (false, rest),
            None => (true, text.strip_prefix("compute_").ok_or(())?),
        };
        let (number, features) = match rest.as_bytes().last() {
            Some(b'a') => (&rest[..rest.len() - 1], ArchFeatures::Architecture),
            Some(b'f') => (&rest[..rest.len() - 1], ArchFeatures::Family),
            _ => (rest, ArchFeatures::Portable),
        };
        match number.parse() {
            Ok(capability @ 10..=999) => Ok(CudaTarget { capability, features, is_virtual }),
            _ => Err(()),
        }
    }
}
