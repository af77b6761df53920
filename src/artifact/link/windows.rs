//! The runtime's symbols on Windows, where a library must state which other library each symbol comes from.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use ar_archive_writer::{COFFShortExport, MachineTypes, write_import_library};
use object::{Object, ObjectSymbol};
use target_lexicon::{Architecture, Environment};

use super::error::LinkError;
use super::imports::import_object;
use super::objects::{Looked, for_each_object};
use super::stated::Link;
use crate::artifact::map::contents;

/// The file name of upstream's runtime on Windows.
const RUNTIME: &str = "tvm_ffi.dll";

/// The prefix of the runtime's symbols.
const PREFIX: &[u8] = b"TVMFFI";

/// The prefix of the name of a function that an object calls through the import table (`__declspec(dllimport)`).
const IMPORTED: &[u8] = b"__imp_";

/// The import library to link against: the given runtime, or one that is written to `folder`. That one imports the
/// runtime's symbols that the inputs need from the given program or DLL, or by default from `tvm_ffi.dll`. Returns
/// `None` if the inputs need no such symbol.
pub(super) fn runtime(linker: &Link, folder: &Path) -> Result<Option<PathBuf>, LinkError> {
    let Some(runtime) = &linker.runtime else {
        return write_imports(linker, RUNTIME, needed(linker), folder);
    };
    let image = contents(runtime).map_err(|source| LinkError::Io { path: runtime.clone(), source })?;
    // few linkers take a program as an input, and not all take a DLL
    if !image.starts_with(b"MZ") {
        return Ok(Some(runtime.clone()));
    }
    let problem = |problem: String| LinkError::Runtime { path: runtime.clone(), problem };
    let exports = object::File::parse(&*image).and_then(|image| image.exports()).map_err(|e| problem(e.to_string()))?;
    let exports: BTreeSet<_> = exports.iter().map(|export| String::from_utf8_lossy(export.name())).collect();
    let needed = needed(linker);
    if let Some(symbol) = needed.iter().find(|symbol| !exports.contains(symbol.as_str())) {
        return Err(problem(format!("it doesn't export `{symbol}`, which the library needs")));
    }
    let name = runtime.file_name().and_then(|name| name.to_str());
    let name = name.filter(|name| name.is_ascii()).ok_or_else(|| problem("its name isn't ASCII".to_owned()))?;
    write_imports(linker, name, needed, folder)
}

/// The runtime's symbols that the inputs need.
fn needed(linker: &Link) -> BTreeSet<String> {
    let mut needed = BTreeSet::new();
    for_each_object(linker, &mut |Looked { object, .. }| {
        let undefined = object.symbols().filter(|symbol| symbol.is_undefined());
        let names = undefined.filter_map(|symbol| symbol.name_bytes().ok());
        let plain = names.map(|name| name.strip_prefix(IMPORTED).unwrap_or(name));
        needed.extend(plain.filter(|name| name.starts_with(PREFIX)).map(|n| String::from_utf8_lossy(n).into_owned()));
    });
    needed
}

/// Writes the file that makes a linker import the symbols from `image`.
fn write_imports(
    linker: &Link,
    image: &str,
    symbols: BTreeSet<String>,
    folder: &Path,
) -> Result<Option<PathBuf>, LinkError> {
    if symbols.is_empty() {
        return Ok(None);
    }
    let mingw = linker.target.environment != Environment::Msvc;
    let machine = match linker.target.architecture {
        Architecture::X86_64 if mingw => {
            let path = folder.join("tvm_ffi-import.o");
            let object = import_object(image, symbols).map_err(io::Error::other);
            let written = object.and_then(|object| fs::write(&path, object));
            return written.map(|()| Some(path.clone())).map_err(|source| LinkError::Io { path, source });
        }
        Architecture::X86_64 => MachineTypes::AMD64,
        Architecture::Aarch64(_) => MachineTypes::ARM64,
        _ => return Err(linker.unsupported("expected x86-64 or aarch64")),
    };
    let path = folder.join("tvm_ffi-import.lib");
    let exports: Vec<_> = symbols.into_iter().map(export).collect();
    let written = File::create(&path)
        .and_then(|mut file| write_import_library(&mut file, image, &exports, machine, mingw, false, &[]));
    written.map(|()| Some(path.clone())).map_err(|source| LinkError::Io { path, source })
}

fn export(name: String) -> COFFShortExport {
    COFFShortExport {
        name,
        ext_name: None,
        symbol_name: None,
        import_name: None,
        export_as: None,
        ordinal: 0,
        noname: false,
        data: false,
        private: false,
        constant: false,
    }
}
