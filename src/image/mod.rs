//! Images of device code, which a device's driver loads. This module reads what launches of their kernels need to
//! know.
//!
//! It is independent of lowering. An [`Image`] is created from bytes, and bytes that are not an image are refused.

mod amd_target;
mod bundle;
mod code_object;
mod contents;
mod cubin;
mod elf;
mod error;
mod fatbin;
mod ptx;
pub mod rtc;
mod target;

use std::fmt;
use std::sync::Arc;

pub use amd_target::{AmdProcessor, AmdTarget};
pub use contents::{EntryParam, ImageEntry, ImageKind};
pub use error::{ImageError, MismatchedParams};
pub use target::{ArchFeatures, CudaTarget, GpuTarget};

use contents::Read;

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

impl Image {
    /// Reads an image. A NUL at the end of PTX is optional.
    ///
    /// # Errors
    /// The bytes are not a known kind of image, or the image is broken.
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

    /// The bytes as passed to [`from_bytes`](Self::from_bytes).
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// The kind.
    pub fn kind(&self) -> ImageKind {
        self.kind
    }

    /// The architectures that the image has code for; a fatbin or a bundle may have several. Empty if the image
    /// doesn't state them.
    pub fn targets(&self) -> &[GpuTarget] {
        &self.targets
    }

    /// The kernels, if all of them are known. A fatbin or a bundle has one entry per kernel and architecture. In a
    /// fatbin, only uncompressed elements can be read.
    pub fn entries(&self) -> Option<&[ImageEntry]> {
        self.tells_all.then_some(&self.entries)
    }

    /// The known kernels with this name: one, or in a fatbin or a bundle one per architecture.
    pub fn entries_of(&self, name: &str) -> impl Iterator<Item = &ImageEntry> {
        self.entries.iter().filter(move |entry| entry.name == name)
    }

    /// The known kernels with this name, each with its architecture if the image states it.
    pub(crate) fn entries_with_targets_of(&self, name: &str) -> impl Iterator<Item = (Option<GpuTarget>, &ImageEntry)> {
        let all = self.entry_targets.iter().copied().zip(&self.entries);
        all.filter(move |(_, entry)| entry.name == name)
    }

    /// The first kernel with this name.
    pub fn entry(&self, name: &str) -> Option<&ImageEntry> {
        self.entries_of(name).next()
    }

    /// The static shared memory of a kernel in bytes, if the image is machine code and states the same value for each
    /// of its architectures. For PTX it isn't known, because it depends on the driver's compiler.
    pub(crate) fn static_shared_of(&self, name: &str) -> Option<u32> {
        let is_ptx =
            |target: Option<GpuTarget>| target.and_then(GpuTarget::cuda).is_some_and(|target| target.is_virtual);
        let mut told =
            self.entries_with_targets_of(name).map(|(target, entry)| (!is_ptx(target)).then_some(entry.static_shared));
        let first = told.next().flatten().filter(|_| self.tells_all);
        first.filter(|_| told.all(|other| other == first))
    }

    /// Whether the image states the parameters of a kernel for each of its architectures.
    pub fn tells_params_of(&self, name: &str) -> bool {
        self.tells_all && self.entries_of(name).all(|entry| entry.params.is_some())
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({}, {:?}, {} bytes)", self.kind, self.targets, self.bytes.len())
    }
}
