//! A reader of libraries and objects of any format and machine. No code of the file is run.

use std::io;
use std::path::{Path, PathBuf};

use object::{File, Object, ObjectKind};
use tvm_ffi_runtime::abi::symbol::LIBRARY_BIN;
use tvm_ffi_runtime::library_bin::{LibraryBin, LibraryBinError, Node};

use super::map::map;
use crate::lower::LaunchDescription;
pub use defines::defines_symbol;
use names::Names;
use symbols::Symbols;

mod bytes;
mod defines;
mod json;
mod names;
mod needed;
mod symbols;
mod texts;

/// The error of [`inspect`] and [`defines_symbol`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// The file can't be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is neither an object nor a library, or it is broken.
    #[error("{}: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The part that is wrong, and how.
        problem: String,
    },
    /// The file's `__tvm_ffi__library_bin` is broken.
    #[error("{}: {source}", path.display())]
    LibraryBin {
        /// The file.
        path: PathBuf,
        /// The part of it that is wrong.
        source: LibraryBinError,
    },
}

/// The contents of an object or library, as [`inspect`] finds them.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Binary {
    /// The format: `ELF`, `Mach-O`, `COFF`, `PE`.
    pub format: &'static str,
    /// The machine, such as `X86_64`.
    pub architecture: String,
    /// Whether the file is linked: a library or a program, and not an object.
    pub linked: bool,
    /// The functions `__tvm_ffi_<name>`, by name.
    pub functions: Vec<BinaryFunction>,
    /// Whether the file has a variable for the address of the library's module, `__tvm_ffi__library_ctx`.
    pub has_context: bool,
    /// The symbols that another file has to define, by name. Weak symbols may stay undefined, and are left out.
    pub needed_symbols: Vec<String>,
    /// The libraries that are loaded with the file, in order.
    pub needed_libraries: Vec<String>,
    /// The nodes of `__tvm_ffi__library_bin`, the root first; `None` where there is none.
    pub modules: Option<Vec<BinaryModule>>,
}

/// A function of a [`Binary`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BinaryFunction {
    /// The function's name; in a system library, with the library's prefix.
    pub name: String,
    /// Whether the function has metadata: `__tvm_ffi__metadata_<name>`.
    pub has_metadata: bool,
    /// Whether the function has a doc: `__tvm_ffi__doc_<name>`.
    pub has_doc: bool,
    /// The metadata, as JSON. A function of the file returns it, and no function is called, so that it is known only where this crate made the object:
    /// there it is found in the data.
    pub metadata: Option<String>,
    /// The text form of the signature, from the metadata.
    pub signature: Option<String>,
    /// The doc, which is known where the metadata is.
    pub doc: Option<String>,
    /// The launches that the function makes, from the metadata.
    pub launches: Vec<LaunchDescription>,
}

/// A node of a [`Binary`]'s import tree.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BinaryModule {
    /// The module's kind; `_lib` is the library itself.
    pub kind: String,
    /// The size of the payload in bytes.
    pub size: u64,
    /// The indices of the nodes that the module imports.
    pub imports: Vec<usize>,
}

/// Reads an object file or shared library: ELF, Mach-O, COFF or PE. Of a large file only the parts that are looked at are read.
///
/// The file need not be trusted. The time grows with the file's size: data that sections share are searched once, and names that entries of
/// tables share are read until they are 16 times the file.
///
/// # Errors
/// The file can't be read, isn't regular (a FIFO is not waited for), has another format, or is broken.
pub fn inspect(path: impl AsRef<Path>) -> Result<Binary, InspectError> {
    let path = path.as_ref();
    let mapped = map(path).map_err(|source| InspectError::Io { path: path.to_owned(), source })?;
    read(&mapped, path)
}

/// The contents of an object or shared library in memory; otherwise as [`inspect`]. Messages call the bytes by `name`.
///
/// # Errors
/// The bytes have another format, or are broken.
pub fn inspect_bytes(bytes: &[u8], name: &str) -> Result<Binary, InspectError> {
    read(bytes, Path::new(name))
}

fn read(bytes: &[u8], path: &Path) -> Result<Binary, InspectError> {
    let malformed = |problem: String| InspectError::Malformed { path: path.to_owned(), problem };
    if bytes.starts_with(&object::archive::MAGIC) {
        return Err(malformed("an archive: extract its members (`ar x`), and inspect those".to_owned()));
    }
    let file = File::parse(bytes).map_err(|error| malformed(format!("no object or library: {error}")))?;
    let mut names = Names::of_file(bytes.len());
    let symbols = Symbols::read(&file, &mut names).map_err(malformed)?;
    let needed_libraries = needed::libraries(&file, &mut names).map_err(malformed)?;
    let blob = match symbols.library_bin() {
        None => None,
        Some(place) => Some(
            bytes::from(&file, place).ok_or_else(|| malformed(format!("`{LIBRARY_BIN}` is not in the file's data")))?,
        ),
    };
    let bin = blob.map(LibraryBin::parse).transpose();
    let bin = bin.map_err(|source| InspectError::LibraryBin { path: path.to_owned(), source })?;
    let mut functions = symbols.functions();
    texts::add(&file, bytes, blob.map(extent).unwrap_or_default(), &mut functions);
    Ok(Binary {
        format: match &file {
            File::Coff(_) | File::CoffBig(_) => "COFF",
            File::Elf32(_) | File::Elf64(_) => "ELF",
            File::MachO32(_) | File::MachO64(_) => "Mach-O",
            _ => "PE",
        },
        architecture: format!("{:?}", file.architecture()),
        linked: file.kind() != ObjectKind::Relocatable,
        functions: functions.into_iter().map(|(_, function)| function).collect(),
        has_context: symbols.has_context(),
        needed_symbols: symbols.undefined().map(str::to_owned).collect(),
        needed_libraries,
        modules: bin.as_ref().map(modules),
    })
}

/// A `library_bin` without what lies behind it: its first integer counts the bytes that follow.
fn extent(blob: &[u8]) -> &[u8] {
    let (header, rest) = blob.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
    let len = usize::try_from(u64::from_le_bytes(*header)).unwrap_or(usize::MAX).min(rest.len());
    &blob[..blob.len() - rest.len() + len]
}

fn modules(bin: &LibraryBin<'_>) -> Vec<BinaryModule> {
    let node = |(index, node): (usize, &Node<'_>)| {
        let (kind, size) = match node {
            Node::Library => (tvm_ffi_runtime::library_bin::LIBRARY_KIND, 0),
            Node::Module { kind, payload } => (*kind, payload.len() as u64),
        };
        BinaryModule { kind: kind.to_owned(), size, imports: bin.children(index).to_vec() }
    };
    bin.nodes().iter().enumerate().map(node).collect()
}
