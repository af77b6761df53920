//! An object file in memory.

use std::io::{self, Write};
use std::path::Path;

use target_lexicon::Triple;

use super::output::Output;

/// A relocatable object file in memory, ready to be linked. Its format is the target's: ELF, Mach-O or COFF.
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

    /// The file's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The file's bytes, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The target that the object was made for.
    pub fn triple(&self) -> &Triple {
        &self.triple
    }

    /// The names of the functions, in the order in which they were added. A host uses these names to get functions
    /// from the library's module.
    pub fn functions(&self) -> &[String] {
        &self.functions
    }

    /// Writes the object to a file. An existing file at `path` is replaced.
    ///
    /// # Errors
    /// The file can't be written. An existing file at `path` is then unchanged, and no other file is left.
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
