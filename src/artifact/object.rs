//! An object file in memory.

use std::io::{self, Write};
use std::path::Path;

use target_lexicon::Triple;

use super::output::Output;

/// A relocatable object file, ready to be linked: ELF, Mach-O or COFF, as its target has it.
#[derive(Clone, PartialEq, Eq)]
pub struct ObjectFile {
    bytes: Vec<u8>,
    triple: Triple,
    functions: Vec<String>,
}

impl ObjectFile {
    pub(super) fn new(bytes: Vec<u8>, triple: Triple, functions: Vec<String>) -> Self {
        ObjectFile { bytes, triple, functions }
    }

    /// The file's contents.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The file's contents, taken out.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The target that the object was made for.
    pub fn triple(&self) -> &Triple {
        &self.triple
    }

    /// The names of the library's functions, in the order in which they were added: what a host asks the library's module for.
    pub fn functions(&self) -> &[String] {
        &self.functions
    }

    /// Writes it to a file, which is replaced if it is there.
    ///
    /// # Errors
    /// It can't be written. Then nothing is left of it, and what was at `path` before still is there.
    pub fn write(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut output = Output::create(path.as_ref())?;
        output.file().write_all(&self.bytes)?;
        output.commit()
    }
}

impl std::fmt::Debug for ObjectFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectFile")
            .field("triple", &self.triple.to_string())
            .field("bytes", &self.bytes.len())
            .field("functions", &self.functions)
            .finish()
    }
}
