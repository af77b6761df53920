//! The runtime's symbols on Windows, where a library has to say which other one each symbol comes from.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use ar_archive_writer::{COFFShortExport, MachineTypes, write_import_library};
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSymbol};
use target_lexicon::{Architecture, Environment};

use super::imports::import_object;
use super::{Input, LinkError, Linker};
use crate::artifact::map::map;

/// The name that upstream's runtime has on Windows.
const RUNTIME: &str = "tvm_ffi.dll";

/// What the runtime's symbols begin with.
const PREFIX: &[u8] = b"TVMFFI";

/// The prefix of the name of a function that an object calls through the table of imports, as `__declspec(dllimport)` has it.
const IMPORTED: &[u8] = b"__imp_";

/// The import library to link against. That is the stated runtime, or one that is made in `folder` and says of each of the runtime's symbols that the
/// inputs need that it comes from the stated program or DLL, or else from `tvm_ffi.dll`. Without such a symbol there is none.
pub(super) fn runtime(linker: &Linker, objects: &[PathBuf], folder: &Path) -> Result<Option<PathBuf>, LinkError> {
    let Some(runtime) = &linker.runtime else {
        return write_imports(linker, RUNTIME, needed(linker, objects), folder);
    };
    let image = map(runtime).map_err(|source| LinkError::Io { path: runtime.clone(), source })?;
    // not all linkers take a DLL, and few a program
    if !image.starts_with(b"MZ") {
        return Ok(Some(runtime.clone()));
    }
    let problem = |problem: String| LinkError::Runtime { path: runtime.clone(), problem };
    let exports = object::File::parse(&*image).and_then(|image| image.exports()).map_err(|e| problem(e.to_string()))?;
    let exports: BTreeSet<_> = exports.iter().map(|export| String::from_utf8_lossy(export.name())).collect();
    let needed = needed(linker, objects);
    if let Some(symbol) = needed.iter().find(|symbol| !exports.contains(symbol.as_str())) {
        return Err(problem(format!("it doesn't export `{symbol}`, which the library needs")));
    }
    let name = runtime.file_name().and_then(|name| name.to_str());
    let name = name.filter(|name| name.is_ascii()).ok_or_else(|| problem("its name isn't ASCII".to_owned()))?;
    write_imports(linker, name, needed, folder)
}

/// The runtime's symbols that the inputs need.
fn needed(linker: &Linker, objects: &[PathBuf]) -> BTreeSet<String> {
    let files = linker.inputs.iter().filter_map(|input| match input {
        Input::File(path) | Input::WholeArchive(path) => Some(path),
        Input::Library(_) => None,
    });
    let mut needed = BTreeSet::new();
    for path in objects.iter().chain(files) {
        // what can't be read is for the linker to report, which knows more formats
        if let Ok(bytes) = map(path) {
            add_needed(&bytes, &mut needed);
        }
    }
    needed
}

/// Adds the runtime's symbols that an object, or the members of an archive, leave undefined.
fn add_needed(bytes: &[u8], needed: &mut BTreeSet<String>) {
    if let Ok(archive) = ArchiveFile::parse(bytes) {
        for member in archive.members().flatten() {
            add_needed(member.data(bytes).unwrap_or_default(), needed);
        }
    } else if let Ok(file) = object::File::parse(bytes) {
        let undefined = file.symbols().filter(|symbol| symbol.is_undefined());
        let names = undefined.filter_map(|symbol| symbol.name_bytes().ok());
        let plain = names.map(|name| name.strip_prefix(IMPORTED).unwrap_or(name));
        needed.extend(plain.filter(|name| name.starts_with(PREFIX)).map(|n| String::from_utf8_lossy(n).into_owned()));
    }
}

/// Writes the file by which a linker takes the symbols from `image`.
fn write_imports(
    linker: &Linker,
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
