//! A reader of libraries and objects of any format and machine. No code of the file is run.

use std::path::Path;

use object::{File, Object, ObjectKind};
use tvm_ffi_runtime::abi::symbol::{LIBRARY_BIN, min_version};
use tvm_ffi_runtime::unstable::library_bin::{LibraryBin, Node};

use super::map::contents;
use crate::object_names::Names;
pub use binary::{Binary, BinaryFunction, BinaryModule, InspectError};
pub use defines::defines_symbol;
use symbols::SymbolTable;

mod binary;
mod bytes;
mod defines;
mod json;
mod needed;
mod symbols;
mod texts;

/// Reads an object file or shared library: ELF, Mach-O, COFF or PE.
///
/// Another process may write to the file or truncate it meanwhile. A file of 256 MiB or more is mapped, so only the
/// accessed parts are read. Truncating a mapped file during the inspection ends this process with `SIGBUS`.
///
/// The file need not be trusted. The time is proportional to the file's size. Data that sections share is searched
/// once. Reading names that table entries share stops at 16 times the file's size.
///
/// # Errors
/// The file can't be read, isn't regular (a FIFO is not waited for), has another format, or is broken.
pub fn inspect(path: impl AsRef<Path>) -> Result<Binary, InspectError> {
    let path = path.as_ref();
    let mapped = contents(path).map_err(|source| InspectError::Io { path: path.to_owned(), source })?;
    read(&mapped, path)
}

/// Like [`inspect`], for an object or shared library in memory. Messages refer to the bytes as `name`.
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
    let symbols = SymbolTable::read(&file, &mut names).map_err(malformed)?;
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
        needed_tvm_ffi: min_version(symbols.undefined()),
        needed_libraries,
        modules: bin.as_ref().map(modules),
    })
}

/// A `library_bin` without the data after it: its first integer counts the bytes that follow.
fn extent(blob: &[u8]) -> &[u8] {
    let (header, rest) = blob.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
    let len = usize::try_from(u64::from_le_bytes(*header)).unwrap_or(usize::MAX).min(rest.len());
    &blob[..blob.len() - rest.len() + len]
}

fn modules(bin: &LibraryBin<'_>) -> Vec<BinaryModule> {
    let node = |(index, node): (usize, &Node<'_>)| {
        let (kind, size) = match node {
            Node::Library => (tvm_ffi_runtime::unstable::library_bin::LIBRARY_KIND, 0),
            Node::Module { kind, payload } => (*kind, payload.len() as u64),
        };
        BinaryModule { kind: kind.to_owned(), size, imports: bin.children(index).to_vec() }
    };
    bin.nodes().iter().enumerate().map(node).collect()
}
