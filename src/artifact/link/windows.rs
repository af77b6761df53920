//! The runtime's symbols on Windows, where a library has to say which other one each symbol comes from.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use ar_archive_writer::{COFFShortExport, MachineTypes, write_import_library};
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSymbol};
use target_lexicon::{Architecture, Environment};

use super::{Input, LinkError, Linker};
use crate::artifact::map::map;

/// The name that upstream's runtime has on Windows.
const RUNTIME: &str = "tvm_ffi.dll";

/// What the runtime's symbols begin with.
const PREFIX: &[u8] = b"TVMFFI";

/// The import library to link against: that of the stated runtime, or one that says of each of the runtime's symbols that the inputs need that it comes
/// from `tvm_ffi.dll`, which is put into `folder`.
pub(super) fn runtime(linker: &Linker, objects: &[PathBuf], folder: &Path) -> Result<PathBuf, LinkError> {
    if let Some(runtime) = &linker.runtime {
        return Ok(runtime.clone());
    }
    let machine = match linker.target.architecture {
        Architecture::X86_64 => MachineTypes::AMD64,
        Architecture::Aarch64(_) => MachineTypes::ARM64,
        _ => return Err(linker.unsupported("expected x86-64 or aarch64")),
    };
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
    let path = folder.join("tvm_ffi-import.lib");
    let exports: Vec<_> = needed.into_iter().map(export).collect();
    let mingw = linker.target.environment != Environment::Msvc;
    let written = File::create(&path)
        .and_then(|mut file| write_import_library(&mut file, RUNTIME, &exports, machine, mingw, false, &[]));
    written.map(|()| path.clone()).map_err(|source| LinkError::Io { path, source })
}

/// Adds the runtime's symbols that an object, or the members of an archive, leave undefined.
fn add_needed(bytes: &[u8], needed: &mut BTreeSet<String>) {
    if let Ok(archive) = ArchiveFile::parse(bytes) {
        for member in archive.members().flatten() {
            add_needed(member.data(bytes).unwrap_or_default(), needed);
        }
    } else if let Ok(file) = object::File::parse(bytes) {
        let undefined = file.symbols().filter(|symbol| symbol.is_undefined());
        let names = undefined.filter_map(|symbol| symbol.name_bytes().ok()).filter(|name| name.starts_with(PREFIX));
        needed.extend(names.map(|name| String::from_utf8_lossy(name).into_owned()));
    }
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
