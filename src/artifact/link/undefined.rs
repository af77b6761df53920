//! Finds symbols of a linked library that will be undefined when it is loaded.
//!
//! ELF and Mach-O linkers let a library have undefined symbols, since the program that loads it may define them. For
//! a library of wrappers, the program defines the C API and the C library. Any other undefined symbol is a kernel
//! that wasn't linked, and loading would fail.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use object::read::elf::{ElfFile, FileHeader};
use object::read::macho::{MachHeader, MachOFile, Nlist};
use object::{File, Object, ObjectSymbol, elf, macho};

use super::c_library::is_of_c_library;
use super::error::LinkError;
use super::objects::{Looked, for_each_object};
use super::stated::{Input, Link};
use crate::artifact::map::contents;
use crate::diagnostic::UndefinedSymbol;
use crate::object_symbols::{c_name, referrers};

/// The prefix of the C API's symbols.
const C_API: &str = "TVMFFI";

/// The maximum number of references that are reported per symbol.
const REFERENCES: usize = 4;

/// Finds a library that is loaded with the output, given its name in the output.
pub(super) type FindLibrary<'a> = &'a dyn Fn(&OsStr) -> Option<PathBuf>;

/// Checks that the bytes of a linked library have no symbol that stays undefined. The outer error is about the bytes.
pub(super) fn check(linker: &Link, library: &[u8], find: FindLibrary<'_>) -> object::Result<Result<(), LinkError>> {
    // The loader refuses files of other kinds.
    let Ok(file) = File::parse(library) else { return Ok(Ok(())) };
    let mut missing = match &file {
        File::Elf32(file) => of_elf(file, linker, find)?,
        File::Elf64(file) => of_elf(file, linker, find)?,
        File::MachO32(file) => of_macho(file)?,
        File::MachO64(file) => of_macho(file)?,
        // PE linkers leave no symbol undefined
        _ => return Ok(Ok(())),
    };
    missing.retain(|name| !name.starts_with(C_API) && !linker.allows(name));
    if missing.is_empty() {
        return Ok(Ok(()));
    }
    let symbols = missing.iter().map(|name| UndefinedSymbol::new(name, []));
    let mut symbols: Vec<UndefinedSymbol> = symbols.collect();
    for_each_object(linker, &mut |Looked { label, object, .. }| {
        let wanted = missing.iter().map(String::as_str).collect();
        for (name, places) in referrers(object, &wanted) {
            let places = places.into_iter().map(|place| format!("`{place}` of {label}"));
            if let Some(symbol) = symbols.iter_mut().find(|symbol| symbol.name == name) {
                symbol.references.extend(places);
                symbol.references.truncate(REFERENCES);
            }
        }
    });
    Ok(Err(LinkError::Undefined { symbols }))
}

/// The undefined symbols of an ELF library, except those of the C library and of the libraries loaded with it.
fn of_elf<'data, H: FileHeader>(
    file: &ElfFile<'data, H>,
    linker: &Link,
    find: FindLibrary<'_>,
) -> object::Result<BTreeSet<String>> {
    let endian = file.endian();
    let versions = file.elf_section_table().versions(endian, file.data())?.unwrap_or_default();
    let mut missing = BTreeSet::new();
    for symbol in file.dynamic_symbols() {
        // a symbol's version comes from a library that the linker has found
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
            // a library that wasn't found may define any symbol
            return Ok(BTreeSet::new());
        };
        match exports(&path) {
            Some(exports) => missing.retain(|name| !exports.contains(name)),
            None => return Ok(BTreeSet::new()),
        }
    }
    Ok(missing)
}

/// The exported symbols of an ELF library.
fn exports(path: &Path) -> Option<BTreeSet<String>> {
    let mapped = contents(path).ok()?;
    let file = File::parse(&*mapped).ok()?;
    let defined = file.dynamic_symbols().filter(|symbol| symbol.is_definition() && symbol.is_global());
    Some(defined.filter_map(|symbol| symbol.name().ok().map(str::to_owned)).collect())
}

/// The symbols that the loader is to search in all libraries, as the linker has found them in none.
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

impl Link {
    /// Whether the caller allows a symbol to stay undefined.
    fn allows(&self, name: &str) -> bool {
        self.allowed.iter().any(|allowed| match allowed.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => allowed == name,
        })
    }

    /// A library that is loaded with the output, if it is among the inputs or in the caller's directories.
    fn find_library(&self, name: &OsStr) -> Option<PathBuf> {
        let files = self.inputs.iter().filter_map(|input| match input {
            Input::File(path) => Some(path),
            _ => None,
        });
        let files = files.chain(&self.runtime);
        let mut named = files.filter(|path| path.file_name() == Some(name) || soname(path).as_deref() == name.to_str());
        let folders = self.args.iter().filter_map(|arg| arg.to_str()?.strip_prefix("-L")).map(PathBuf::from);
        let in_folder = |folder: PathBuf| Some(folder.join(name)).filter(|path| path.is_file());
        // a library without a soname is recorded with the path that was linked
        let as_path = || Some(PathBuf::from(name)).filter(|path| path.components().count() > 1 && path.is_file());
        named
            .next()
            .cloned()
            .or_else(|| self.folders.iter().cloned().chain(folders).find_map(in_folder))
            .or_else(as_path)
    }
}

/// The soname of a library.
fn soname(path: &Path) -> Option<String> {
    let mapped = contents(path).ok()?;
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
