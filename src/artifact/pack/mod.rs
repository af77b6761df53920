//! Packing modules into an object: `__tvm_ffi__library_bin`, whose payloads go from their files to the object's without a stay in memory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use target_lexicon::Triple;
use tvm_ffi_runtime::library_bin::{Layout, LibraryBinError, NodeSpec};

mod object;
mod stream;

/// The bytes of a module.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Payload {
    /// The contents of a regular file of any size.
    File(PathBuf),
    /// Bytes in memory.
    Bytes(Vec<u8>),
}

/// A module of a [`LibraryBinBuilder`], good for that one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NodeId(usize);

/// The error of packing modules. No output is left then, and what was there before still is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// Objects of the target are not known here.
    #[error(
        "can't make objects for {0}: expected ELF (x86-64, aarch64, riscv64, s390x), Mach-O or COFF (x86-64, aarch64)"
    )]
    Target(Triple),
    /// The modules are no tree that can be read back.
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
        /// The file.
        path: PathBuf,
        /// The file's size in bytes at first.
        expected: u64,
        /// The file's size in bytes later; less where it ended early.
        found: u64,
    },
    /// The modules are larger than an object of the target can be.
    #[error("{size} bytes are too many for a {format} object, which holds {limit}")]
    TooLarge {
        /// The object's format.
        format: &'static str,
        /// The size of it all in bytes.
        size: u64,
        /// The greatest size in bytes.
        limit: u64,
    },
    /// There is no range of addresses of that size.
    #[error("can't reserve {size} bytes of address space: {source}")]
    AddressSpace {
        /// The size of it all in bytes.
        size: u64,
        /// The system's error.
        source: io::Error,
    },
    /// The output can't be written.
    #[error("{}: {source}", path.display())]
    Output {
        /// The output's path.
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
/// The node that is added first is the root, which is what loading the library gives; every other one should be imported by some node.
/// ```
/// use tvm_ffi_codegen::artifact::{LibraryBinBuilder, Payload};
///
/// let mut bin = LibraryBinBuilder::new();
/// let library = bin.library();
/// let kernels = bin.module("cuda", Payload::Bytes(b"a cubin".to_vec()));
/// bin.import(library, kernels);
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

    /// Adds the library itself, `_lib`. Once at most.
    pub fn library(&mut self) -> NodeId {
        self.push(None)
    }

    /// Adds a module whose bytes `ffi.Module.load_from_bytes.<kind>` will get.
    pub fn module(&mut self, kind: impl Into<String>, payload: Payload) -> NodeId {
        self.push(Some((kind.into(), payload)))
    }

    fn push(&mut self, content: Option<(String, Payload)>) -> NodeId {
        self.modules.push(Module { content, imports: Vec::new() });
        NodeId(self.modules.len() - 1)
    }

    /// Makes `importer` import `imported`, behind what it imports already. A node that isn't of this builder makes
    /// [`write_object`](Self::write_object) fail, or stands for another one.
    pub fn import(&mut self, importer: NodeId, imported: NodeId) -> &mut Self {
        if let Some(module) = self.modules.get_mut(importer.0) {
            module.imports.push(imported.0);
        }
        self
    }

    /// Sets the prefix of the symbol's name: that of a system library.
    pub fn symbol_prefix(&mut self, prefix: impl Into<String>) -> &mut Self {
        self.prefix = prefix.into();
        self
    }

    /// Writes an object for `target` to `path`. Memory use doesn't grow with the payloads that are files.
    ///
    /// On ELF for x86-64 the bytes lie in a section for large data (`.lrodata`), so that code and data of the library still reach each other
    /// when they are more than 2 GiB; elsewhere in read-only data. Mach-O and COFF hold less than 4 GiB.
    ///
    /// # Errors
    /// The nodes are no tree (none at all, two libraries, a cycle), a payload can't be read or changes meanwhile, it all is too large for the
    /// format, the output can't be written. Then nothing is left, and what was at `path` before still is there.
    pub fn write_object(&self, target: &Triple, path: impl AsRef<Path>) -> Result<(), PackError> {
        object::write(&self.layout()?, &self.payloads(), &self.prefix, target, path.as_ref())
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

    /// By node.
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
