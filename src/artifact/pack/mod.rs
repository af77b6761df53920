//! Objects that carry modules: `__tvm_ffi__library_bin`, whose payloads are copied from file to file without a stay in memory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use target_lexicon::Triple;
use tvm_ffi_runtime::library_bin::{Layout, LibraryBinError, NodeSpec};

use super::progress::{NOBODY, Progress};

mod object;
mod stream;

use stream::Payloads;

/// The bytes of a module, or the file that they are in.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Payload {
    /// A regular file of any size, all of which is taken.
    File(PathBuf),
    /// Bytes in memory.
    Bytes(Vec<u8>),
}

/// A node of a [`LibraryBinBuilder`], which means nothing to another builder.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NodeId(usize);

/// The error of [`LibraryBinBuilder::write_object`]. A file that was at the object's path before is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// The target's objects are of a format or machine that this crate doesn't know.
    #[error(
        "can't make objects for {0}: expected ELF (x86-64, aarch64, riscv64, s390x), Mach-O or COFF (x86-64, aarch64)"
    )]
    Target(Triple),
    /// The nodes are no tree that can be read back.
    #[error(transparent)]
    Tree(#[from] LibraryBinError),
    /// A payload can't be read.
    #[error("{}: {source}", path.display())]
    Payload {
        /// The payload's file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A payload's file changed its length while it was read.
    #[error("{}: it had {expected} bytes, and has {found} now", path.display())]
    Changed {
        /// The payload's file.
        path: PathBuf,
        /// The size in bytes before the payload was copied.
        expected: u64,
        /// The size in bytes after that; where the file ended early, how many bytes were read.
        found: u64,
    },
    /// The modules are more than an object of the target holds.
    #[error("{size} bytes are too many for a {format} object, which holds {limit}")]
    TooLarge {
        /// The object's format.
        format: &'static str,
        /// The size of all modules together in bytes.
        size: u64,
        /// The most bytes that the format has room for.
        limit: u64,
    },
    /// The process has no free range of addresses of the modules' size.
    #[error("can't reserve {size} bytes of address space: {source}")]
    AddressSpace {
        /// The size of all modules together in bytes.
        size: u64,
        /// The system's error.
        source: io::Error,
    },
    /// The output can't be written.
    #[error("{}: {source}", path.display())]
    Output {
        /// The object's path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The object can't be put together.
    #[error("can't write the object: {source}")]
    Object {
        /// The words of the object's writer.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

#[derive(Debug)]
struct Module {
    /// `None` is the library.
    content: Option<(String, Payload)>,
    imports: Vec<usize>,
}

/// A builder of an object that defines `__tvm_ffi__library_bin`: the modules that a library carries, each with the modules that it imports.
///
/// The node that is added first is the root, the module that a host gets when it loads the library. Every other node should be imported by some node.
/// ```
/// use tvm_ffi_codegen::artifact::{LibraryBinBuilder, Payload};
///
/// let mut bin = LibraryBinBuilder::new();
/// let library = bin.library();
/// let weights = bin.module("my.weights", Payload::Bytes(b"numbers".to_vec()));
/// bin.import(library, weights);
///
/// let folder = tempfile::tempdir()?;
/// let object = folder.path().join("bin.o");
/// bin.write_object(&"aarch64-unknown-linux-gnu".parse()?, &object)?;
/// assert!(object.exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct LibraryBinBuilder {
    modules: Vec<Module>,
    prefix: String,
}

impl LibraryBinBuilder {
    /// A builder without nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the node `_lib`, which stands for the library itself. A tree has at most one.
    pub fn library(&mut self) -> NodeId {
        self.push(None)
    }

    /// Adds a module. Its bytes are for the global function `ffi.Module.load_from_bytes.<kind>`, which makes the module when the library is loaded.
    pub fn module(&mut self, kind: impl Into<String>, payload: Payload) -> NodeId {
        self.push(Some((kind.into(), payload)))
    }

    fn push(&mut self, content: Option<(String, Payload)>) -> NodeId {
        self.modules.push(Module { content, imports: Vec::new() });
        NodeId(self.modules.len() - 1)
    }

    /// Makes `importer` import `imported`, behind the modules that it imports already. With a node of another builder,
    /// [`write_object`](Self::write_object) fails, or takes it for a node of its own.
    pub fn import(&mut self, importer: NodeId, imported: NodeId) -> &mut Self {
        if let Some(module) = self.modules.get_mut(importer.0) {
            module.imports.push(imported.0);
        }
        self
    }

    /// Sets the prefix of the symbol's name, which is the prefix of a system library.
    pub fn symbol_prefix(&mut self, prefix: impl Into<String>) -> &mut Self {
        self.prefix = prefix.into();
        self
    }

    /// Writes the object for `target` to `path`. Payloads that are files take no memory.
    ///
    /// On ELF for x86-64 the bytes are in a section for large data (`.lrodata`), so that the library's code and data still reach each other when
    /// the modules are more than 2 GiB. Elsewhere they are in read-only data. Mach-O and COFF hold less than 4 GiB.
    ///
    /// # Errors
    /// The nodes are no tree (no node, two libraries, a cycle), a payload can't be read or changes meanwhile, the modules are too large for the
    /// format, or the object can't be written. Then a file that was at `path` before is unchanged, and no other file is left.
    pub fn write_object(&self, target: &Triple, path: impl AsRef<Path>) -> Result<(), PackError> {
        self.write_object_observed(target, path, NOBODY)
    }

    /// As [`write_object`](Self::write_object), and tells an observer how many bytes of the payloads are copied, every 16 MiB or so.
    ///
    /// # Errors
    /// As [`write_object`](Self::write_object).
    pub fn write_object_observed(
        &self,
        target: &Triple,
        path: impl AsRef<Path>,
        observer: &(dyn Fn(Progress) + Sync),
    ) -> Result<(), PackError> {
        let (layout, payloads) = (self.layout()?, self.payloads());
        object::write(&layout, Payloads::new(&payloads, &layout, observer), &self.prefix, target, path.as_ref())
    }

    fn layout(&self) -> Result<Layout, PackError> {
        let mut nodes = Vec::with_capacity(self.modules.len());
        for module in &self.modules {
            nodes.push(match &module.content {
                None => NodeSpec::Library,
                Some((kind, payload)) => NodeSpec::Module { kind, payload_len: payload.len()? },
            });
        }
        let children: Vec<_> = self.modules.iter().map(|module| module.imports.clone()).collect();
        Ok(Layout::new(&nodes, &children)?)
    }

    /// The payload of each node; the library has none.
    fn payloads(&self) -> Vec<Option<&Payload>> {
        self.modules.iter().map(|module| Some(&module.content.as_ref()?.1)).collect()
    }
}

impl Payload {
    /// The size in bytes.
    fn len(&self) -> Result<u64, PackError> {
        let path = match self {
            Payload::Bytes(bytes) => return Ok(bytes.len() as u64),
            Payload::File(path) => path,
        };
        let failed = |source| PackError::Payload { path: path.clone(), source };
        let metadata = fs::metadata(path).map_err(failed)?;
        // of a pipe or a device nobody knows how much will come
        match metadata.is_file() {
            true => Ok(metadata.len()),
            false => Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "expected a regular file"))),
        }
    }
}
