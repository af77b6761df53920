//! The undefined symbols of a linked library that nobody defines when it is loaded.
//!
//! Linkers of ELF and Mach-O let a library have undefined symbols, since the program that loads it may define them. Of a library of wrappers the program
//! defines the C API and the C library; any other such symbol is a kernel that wasn't linked, and loading would fail.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use object::read::archive::ArchiveFile;
use object::read::elf::{ElfFile, FileHeader};
use object::read::macho::{MachHeader, MachOFile, Nlist};
use object::{File, Object, ObjectSymbol, elf, macho};

use super::c_library::is_of_c_library;
use super::{Input, LinkError, Linker};
use crate::artifact::map::map;
use crate::object_symbols::{c_name, referrers};

/// The beginning of the C API's symbols.
const C_API: &str = "TVMFFI";

/// A symbol that a library needs and nobody defines.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct UndefinedSymbol {
    /// The symbol's name in C.
    pub name: String,
    /// The functions and variables that refer to it, with their objects, in words. At most a few; none where that isn't known.
    pub references: Vec<String>,
}

impl fmt::Display for UndefinedSymbol {
    /// Writes the name, and who refers to it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.references.is_empty() {
            true => write!(f, "`{}`", self.name),
            false => write!(f, "`{}` (referred to by {})", self.name, self.references.join(", ")),
        }
    }
}

/// The most references of a symbol that are told.
const REFERENCES: usize = 4;

/// Finds a library that is loaded with the output, by the name that the output has for it.
pub(super) type FindLibrary<'a> = &'a dyn Fn(&OsStr) -> Option<PathBuf>;

/// Checks that the linked library at `output` needs no symbol that nobody defines.
pub(super) fn check(
    linker: &Linker,
    objects: &[PathBuf],
    output: &Path,
    find: FindLibrary<'_>,
) -> Result<(), LinkError> {
    let io = |source| LinkError::Io { path: output.to_owned(), source };
    let mapped = map(output).map_err(io)?;
    // A file of another kind is for the loader to refuse.
    let Ok(file) = File::parse(&*mapped) else { return Ok(()) };
    let missing = match &file {
        File::Elf32(file) => of_elf(file, linker, find),
        File::Elf64(file) => of_elf(file, linker, find),
        File::MachO32(file) => of_macho(file),
        File::MachO64(file) => of_macho(file),
        // linkers of PE leave nothing undefined
        _ => return Ok(()),
    };
    let mut missing = missing.map_err(|error| io(std::io::Error::other(error)))?;
    missing.retain(|name| !name.starts_with(C_API) && !linker.allows(name));
    if missing.is_empty() {
        return Ok(());
    }
    let symbols = missing.iter().map(|name| UndefinedSymbol { name: name.clone(), references: Vec::new() });
    let mut symbols: Vec<UndefinedSymbol> = symbols.collect();
    for_each_object(linker, objects, &mut |label, object| {
        let wanted = missing.iter().map(String::as_str).collect();
        for (name, places) in referrers(object, &wanted) {
            let places = places.into_iter().map(|place| format!("`{place}` of {label}"));
            if let Some(symbol) = symbols.iter_mut().find(|symbol| symbol.name == name) {
                symbol.references.extend(places);
                symbol.references.truncate(REFERENCES);
            }
        }
    });
    Err(LinkError::Undefined { symbols })
}

/// Undefined symbols of a library of ELF, but for those of the C library and of the libraries that are loaded with it.
fn of_elf<'data, H: FileHeader>(
    file: &ElfFile<'data, H>,
    linker: &Linker,
    find: FindLibrary<'_>,
) -> object::Result<BTreeSet<String>> {
    let endian = file.endian();
    let versions = file.elf_section_table().versions(endian, file.data())?.unwrap_or_default();
    let mut missing = BTreeSet::new();
    for symbol in file.dynamic_symbols() {
        // a version is that of a library, which the linker has found
        let version = versions.version(versions.version_index(endian, symbol.index()))?;
        if symbol.is_undefined() && !symbol.is_weak() && version.is_none() {
            missing.insert(symbol.name()?.to_owned());
        }
    }
    missing.remove("");
    missing.retain(|name| !name.starts_with(C_API) && !is_of_c_library(name));
    if missing.is_empty() {
        return Ok(missing);
    }
    let table = file.elf_dynamic_table()?;
    for entry in table.iter().filter(|entry| entry.tag == elf::DT_NEEDED) {
        let name = String::from_utf8_lossy(table.string(entry)?).into_owned();
        let Some(path) = linker.find_library(OsStr::new(&name)).or_else(|| find(OsStr::new(&name))) else {
            // a library that isn't found may define anything
            return Ok(BTreeSet::new());
        };
        match exports(&path) {
            Some(exports) => missing.retain(|name| !exports.contains(name)),
            None => return Ok(BTreeSet::new()),
        }
    }
    Ok(missing)
}

/// The symbols that a library of ELF defines for others.
fn exports(path: &Path) -> Option<BTreeSet<String>> {
    let mapped = map(path).ok()?;
    let file = File::parse(&*mapped).ok()?;
    let defined = file.dynamic_symbols().filter(|symbol| symbol.is_definition() && symbol.is_global());
    Some(defined.filter_map(|symbol| symbol.name().ok().map(str::to_owned)).collect())
}

/// Symbols that the loader is to look for everywhere, as the linker has found them in no library.
fn of_macho<H: MachHeader>(file: &MachOFile<'_, H>) -> object::Result<BTreeSet<String>> {
    let endian = file.endian();
    let mut missing = BTreeSet::new();
    for symbol in file.symbols().filter(|symbol| symbol.is_undefined() && !symbol.is_weak()) {
        if symbol.macho_symbol().library_ordinal(endian) == macho::DYNAMIC_LOOKUP_ORDINAL {
            missing.insert(c_name(object::BinaryFormat::MachO, symbol.name()?).to_owned());
        }
    }
    Ok(missing)
}

/// Calls a function for each object that was linked, with the object in words. Files that can't be read are passed over.
fn for_each_object(linker: &Linker, objects: &[PathBuf], f: &mut dyn FnMut(&str, &File<'_>)) {
    for (index, path) in objects.iter().enumerate() {
        let label = match objects.len() {
            1 => "the object in memory".to_owned(),
            _ => format!("object {} in memory", index + 1),
        };
        for_each_object_of(path, &label, f);
    }
    for input in &linker.inputs {
        if let Input::File(path) | Input::WholeArchive(path) = input {
            for_each_object_of(path, &path.display().to_string(), f);
        }
    }
}

fn for_each_object_of(path: &Path, label: &str, f: &mut dyn FnMut(&str, &File<'_>)) {
    let Ok(mapped) = map(path) else { return };
    if let Ok(archive) = ArchiveFile::parse(&*mapped) {
        for member in archive.members().flatten() {
            let name = String::from_utf8_lossy(member.name());
            if let Ok(object) = member.data(&*mapped).and_then(File::parse) {
                f(&format!("{label}({name})"), &object);
            }
        }
    } else if let Ok(object) = File::parse(&*mapped) {
        f(label, &object);
    }
}

impl Linker {
    /// Whether the caller allows a symbol to stay undefined.
    fn allows(&self, name: &str) -> bool {
        self.allowed.iter().any(|allowed| match allowed.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => allowed == name,
        })
    }

    /// A library that is loaded with the output, if it is among the inputs or in the caller's folders.
    fn find_library(&self, name: &OsStr) -> Option<PathBuf> {
        let files = self.inputs.iter().filter_map(|input| match input {
            Input::File(path) => Some(path),
            _ => None,
        });
        let files = files.chain(&self.runtime);
        let mut named = files.filter(|path| path.file_name() == Some(name) || soname(path).as_deref() == name.to_str());
        let folders = self.args.iter().filter_map(|arg| arg.to_str()?.strip_prefix("-L")).map(PathBuf::from);
        let in_folder = |folder: PathBuf| Some(folder.join(name)).filter(|path| path.is_file());
        // without a name of its own, a library has the path that it was linked by
        let as_path = || Some(PathBuf::from(name)).filter(|path| path.components().count() > 1 && path.is_file());
        named
            .next()
            .cloned()
            .or_else(|| self.folders.iter().cloned().chain(folders).find_map(in_folder))
            .or_else(as_path)
    }
}

/// The name by which a library asks to be loaded.
fn soname(path: &Path) -> Option<String> {
    let mapped = map(path).ok()?;
    fn of<H: FileHeader>(file: &ElfFile<'_, H>) -> Option<String> {
        let table = file.elf_dynamic_table().ok()?;
        let entry = table.iter().find(|entry| entry.tag == elf::DT_SONAME)?;
        Some(String::from_utf8_lossy(table.string(entry).ok()?).into_owned())
    }
    match File::parse(&*mapped).ok()? {
        File::Elf32(file) => of(&file),
        File::Elf64(file) => of(&file),
        _ => None,
    }
}
