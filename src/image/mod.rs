//! Images of device code: what a device's driver loads, read as far as the code that launches their kernels has to know them.
//!
//! Nothing here knows of lowering. An [`Image`] is made of bytes, and refused where they are no image.

mod amd_target;
mod bundle;
mod code_object;
mod cubin;
mod elf;
mod error;
mod fatbin;
mod ptx;
mod target;

use std::fmt;
use std::sync::Arc;

pub use amd_target::{AmdProcessor, AmdTarget};
pub use error::{ImageError, MismatchedParams};
pub use target::{ArchFeatures, CudaTarget, GpuTarget};

/// An image of device code: a cubin, a fatbin, PTX or an AMD code object.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Image {
    bytes: Arc<[u8]>,
    kind: ImageKind,
    targets: Vec<GpuTarget>,
    entries: Vec<ImageEntry>,
    /// The architecture of each of `entries`.
    entry_targets: Vec<Option<GpuTarget>>,
    tells_all: bool,
}

/// The kind of an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ImageKind {
    /// Machine code for one architecture of NVIDIA's, an ELF file.
    Cubin,
    /// Cubins and PTX for several architectures.
    Fatbin,
    /// NVIDIA's virtual assembly as text, which the driver compiles.
    Ptx,
    /// AMD's machine code, an ELF file or a bundle of them.
    CodeObject,
}

/// A kernel in an image.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct ImageEntry {
    /// The name by which a driver finds the kernel.
    pub name: String,
    /// The parameters in order, where the image tells them.
    pub params: Option<Vec<EntryParam>>,
    /// The static shared memory of a block, in bytes.
    pub static_shared: u32,
    /// The registers of a thread, where the image tells them.
    pub registers: Option<u32>,
    /// The block that the kernel is made for, in threads, where it is made for one.
    pub required_block: Option<[u32; 3]>,
    /// The most threads of a block, where the kernel has such a limit.
    pub max_threads: Option<u32>,
    /// The cluster that the kernel is made for, in blocks, where it is made for one.
    pub cluster: Option<[u32; 3]>,
}

/// A parameter of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EntryParam {
    /// The offset in the parameters' memory, in bytes.
    pub offset: u32,
    /// The size in bytes.
    pub size: u32,
}

/// The contents of an image's bytes.
struct Read {
    kind: ImageKind,
    /// The code for each architecture: one, and of a fatbin or a bundle several.
    parts: Vec<Part>,
    /// The image has no kernels besides.
    tells_all: bool,
}

/// The code for one architecture.
struct Part {
    /// The architecture, where the image tells it.
    target: Option<GpuTarget>,
    /// The kernels that are known.
    entries: Vec<ImageEntry>,
}

impl Read {
    /// Code for one architecture, all of whose kernels are known.
    fn of_one(kind: ImageKind, target: Option<GpuTarget>, entries: Vec<ImageEntry>) -> Self {
        Read { kind, parts: vec![Part { target, entries }], tells_all: true }
    }

    fn into_entries(self) -> impl Iterator<Item = ImageEntry> {
        self.parts.into_iter().flat_map(|part| part.entries)
    }
}

impl Image {
    /// Reads an image. PTX may have a NUL at its end or not.
    ///
    /// # Errors
    /// The bytes are no image of a kind that is known, or a broken one.
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Result<Self, ImageError> {
        let bytes = bytes.into();
        let read = match &bytes[..] {
            [0x7f, b'E', b'L', b'F', ..] => elf::read(&bytes)?,
            [0x50, 0xed, 0x55, 0xba, ..] | [0xb1, 0x43, 0x62, 0x46, ..] => fatbin::read(&bytes)?,
            bytes if bytes.starts_with(bundle::MAGIC) => bundle::read(bytes)?,
            _ => ptx::read(&bytes)?,
        };
        let Read { kind, parts, tells_all } = read;
        let targets = parts.iter().filter_map(|part| part.target).collect();
        let entry_targets = parts.iter().flat_map(|part| part.entries.iter().map(|_| part.target)).collect();
        let entries = parts.into_iter().flat_map(|part| part.entries).collect();
        Ok(Image { bytes, kind, targets, entries, entry_targets, tells_all })
    }

    /// The bytes as they were given.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// The kind.
    pub fn kind(&self) -> ImageKind {
        self.kind
    }

    /// The architectures that the image has code for; of a fatbin or a bundle each. Empty where the image doesn't tell.
    pub fn targets(&self) -> &[GpuTarget] {
        &self.targets
    }

    /// The kernels, where the image tells all of them. A fatbin or a bundle has a kernel for each of its architectures; a fatbin tells of those that aren't
    /// compressed.
    pub fn entries(&self) -> Option<&[ImageEntry]> {
        self.tells_all.then_some(&self.entries)
    }

    /// The kernels of a name that the image tells of: one, and of a fatbin or a bundle one for each architecture.
    pub fn entries_of(&self, name: &str) -> impl Iterator<Item = &ImageEntry> {
        self.entries.iter().filter(move |entry| entry.name == name)
    }

    /// The kernels of a name, each with its architecture where the image tells it.
    pub(crate) fn entries_with_targets_of(&self, name: &str) -> impl Iterator<Item = (Option<GpuTarget>, &ImageEntry)> {
        let all = self.entry_targets.iter().copied().zip(&self.entries);
        all.filter(move |(_, entry)| entry.name == name)
    }

    /// The first kernel of a name.
    pub fn entry(&self, name: &str) -> Option<&ImageEntry> {
        self.entries_of(name).next()
    }

    /// Whether the image tells the parameters of a kernel for each of its architectures.
    pub fn tells_params_of(&self, name: &str) -> bool {
        self.tells_all && self.entries_of(name).all(|entry| entry.params.is_some())
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({}, {:?}, {} bytes)", self.kind, self.targets, self.bytes.len())
    }
}

impl fmt::Display for ImageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ImageKind::Cubin => "cubin",
            ImageKind::Fatbin => "fatbin",
            ImageKind::Ptx => "PTX",
            ImageKind::CodeObject => "code object",
        })
    }
}

impl ImageEntry {
    /// Compares the kernel's parameters with those that a launch passes, where the image tells them. `passed` are their sizes in bytes.
    ///
    /// # Errors
    /// They differ in number or in size.
    pub fn check_params(&self, passed: &[u32]) -> Result<(), MismatchedParams> {
        let Some(params) = &self.params else { return Ok(()) };
        if params.iter().map(|param| param.size).eq(passed.iter().copied()) {
            return Ok(());
        }
        let takes = params.iter().map(|param| param.size).collect();
        Err(MismatchedParams { kernel: self.name.clone(), takes, passed: passed.to_vec() })
    }
}
