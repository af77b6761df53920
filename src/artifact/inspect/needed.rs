//! The libraries that are loaded with a file.

use object::endian::Endian;
use object::read::elf::{ElfFile, FileHeader};
use object::read::macho::{MachHeader, MachOFile};
use object::{File, Object, elf};

pub(super) fn libraries(file: &File<'_>) -> object::Result<Vec<String>> {
    match file {
        File::Elf32(file) => of_elf(file),
        File::Elf64(file) => of_elf(file),
        File::MachO32(file) => of_macho(file),
        File::MachO64(file) => of_macho(file),
        _ => {
            let mut names: Vec<_> = file.imports()?.iter().map(|import| text(import.library())).collect();
            names.dedup();
            names.retain(|name| !name.is_empty());
            Ok(names)
        }
    }
}

fn of_elf<E: Endian, H: FileHeader<Endian = E>>(file: &ElfFile<'_, H>) -> object::Result<Vec<String>> {
    let table = file.elf_dynamic_table()?;
    let needed = table.iter().filter(|entry| entry.tag == elf::DT_NEEDED);
    needed.map(|entry| table.string(entry).map(text)).collect()
}

fn of_macho<E: Endian, H: MachHeader<Endian = E>>(file: &MachOFile<'_, H>) -> object::Result<Vec<String>> {
    let mut names = Vec::new();
    let mut commands = file.macho_load_commands()?;
    while let Some(command) = commands.next()? {
        if let Some(dylib) = command.dylib()? {
            names.push(text(command.string(file.endian(), dylib.dylib.name)?));
        }
    }
    Ok(names)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
