//! Objects that carry modules in `__tvm_ffi__library_bin`. Payloads are copied from file to file without being held
//! in memory.

use std::fs;
use std::io;
use std::path::Path;

use target_lexicon::Triple;
use tvm_ffi_runtime::unstable::library_bin::{Layout, NodeSpec};

use super::progress::{NOBODY, Progress};
use crate::lower::is_symbol_prefix;

mod object;
mod payload;
mod stream;

pub use payload::{PackError, Payload};
use stream::Payloads;

/// A node of a [`PackBuilder`]. It is invalid for any other builder.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NodeId(usize);

#[derive(Debug)]
struct Module {
    /// `None` is the library.
    content: Option<(String, Payload)>,
    imports: Vec<usize>,
}

/// Builds an object that defines `__tvm_ffi__library_bin`: the modules that a library carries, each with its imports.
///
/// The first node is the root, the module that a host gets when it loads the library. Every other node should be
/// imported by some node.
/// ```
/// use tvm_ffi_codegen::artifact::{PackBuilder, Payload};
///
/// let mut bin = PackBuilder::new();
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
pub struct PackBuilder {
    modules: Vec<Module>,
    prefix: String,
}

impl PackBuilder {
    /// A builder without nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the node `_lib`, which represents the library itself. A tree has at most one.
    pub fn library(&mut self) -> NodeId {
        self.push(None)
    }

    /// Adds a module. When the library is loaded, its bytes are passed to the global function
    /// `ffi.Module.load_from_bytes.<kind>`, which creates the module.
    pub fn module(&mut self, kind: impl Into<String>, payload: Payload) -> NodeId {
        self.push(Some((kind.into(), payload)))
    }

    fn push(&mut self, content: Option<(String, Payload)>) -> NodeId {
        self.modules.push(Module { content, imports: Vec::new() });
        NodeId(self.modules.len() - 1)
    }

    /// Makes `importer` import `imported`, after its existing imports. With a node of another builder,
    /// [`write_object`](Self::write_object) either fails or errors it for a node of its own.
    pub fn import(&mut self, importer: NodeId, imported: NodeId) -> &mut Self {
        if let Some(module) = self.modules.get_mut(importer.0) {
            module.imports.push(imported.0);
        }
        self
    }

    /// Sets the prefix of the symbol's name: the prefix of a system library.
    pub fn symbol_prefix(&mut self, prefix: impl Into<String>) -> &mut Self {
        self.prefix = prefix.into();
        self
    }

    /// Writes the object for `target` to `path`. Payloads in files are not read into memory.
    ///
    /// On ELF for x86-64 the bytes are in a section for large data (`.lrodata`). The library's code can then still
    /// reach its data when the modules exceed 2 GiB. On other targets they are in read-only data. Mach-O and COFF
    /// hold less than 4 GiB.
    ///
    /// # Errors
    /// The prefix can't begin symbols, or the nodes don't form a tree (no node, two libraries, a cycle). A payload
    /// can't be read or changes meanwhile. The modules are too large for the format, or the object can't be written. An
    /// existing file at `path` is then unchanged, and no other file is left.
    pub fn write_object(&self, target: &Triple, path: impl AsRef<Path>) -> Result<(), PackError> {
        self.write_object_with_progress(target, path, NOBODY)
    }

    /// Like [`write_object`](Self::write_object), with an observer that receives the number of copied payload bytes
    /// about every 16 MiB.
    ///
    /// # Errors
    /// The same as for [`write_object`](Self::write_object).
    pub fn write_object_with_progress(
        &self,
        target: &Triple,
        path: impl AsRef<Path>,
        observer: &(dyn Fn(Progress) + Sync),
    ) -> Result<(), PackError> {
        if !is_symbol_prefix(&self.prefix) {
            return Err(PackError::Prefix { prefix: self.prefix.clone() });
        }
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
        // the size of a pipe or a device is unknown
        match metadata.is_file() {
            true => Ok(metadata.len()),
            false => Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "expected a regular file"))),
        }
    }
}
