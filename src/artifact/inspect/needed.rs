//! The libraries that the loader loads with a file.

use crate::object_names::Names;
use object::endian::Endian;
use object::read::elf::{ElfFile, FileHeader};
use object::read::macho::{MachHeader, MachOFile};
use object::read::pe::{ImageNtHeaders, PeFile};
use object::{File, LittleEndian as LE, elf};

pub(super) fn libraries(file: &File<'_>, names: &mut Names) -> Result<Vec<String>, String> {
    let mut libraries = Vec::new();
    let mut add = |name: object::Result<&[u8]>| -> Result<(), String> {
        libraries.push(names.text(name.map_err(text)?)?.into_owned());
        Ok(())
    };
    match file {
        File::Elf32(file) => of_elf(file, &mut add)?,
        File::Elf64(file) => of_elf(file, &mut add)?,
        File::MachO32(file) => of_macho(file, &mut add)?,
        File::MachO64(file) => of_macho(file, &mut add)?,
        File::Pe32(file) => of_pe(file, &mut add)?,
        File::Pe64(file) => of_pe(file, &mut add)?,
        _ => {}
    }
    // a library may have several lists of imports
    libraries.dedup();
    Ok(libraries)
}

/// Receives the name of a library, which may be broken.
type Add<'a> = dyn FnMut(object::Result<&[u8]>) -> Result<(), String> + 'a;

fn of_elf<E: Endian, H: FileHeader<Endian = E>>(file: &ElfFile<'_, H>, add: &mut Add<'_>) -> Result<(), String> {
    let table = file.elf_dynamic_table().map_err(text)?;
    table.iter().filter(|entry| entry.tag == elf::DT_NEEDED).try_for_each(|entry| add(table.string(entry)))
}

fn of_macho<E: Endian, H: MachHeader<Endian = E>>(file: &MachOFile<'_, H>, add: &mut Add<'_>) -> Result<(), String> {
    let mut commands = file.macho_load_commands().map_err(text)?;
    while let Some(command) = commands.next().map_err(text)? {
        if let Some(dylib) = command.dylib().map_err(text)? {
            add(command.string(file.endian(), dylib.dylib.name))?;
        }
    }
    Ok(())
}

fn of_pe<Pe: ImageNtHeaders>(file: &PeFile<'_, Pe>, add: &mut Add<'_>) -> Result<(), String> {
    let Some(table) = file.import_table().map_err(text)? else { return Ok(()) };
    let mut libraries = table.descriptors().map_err(text)?;
    while let Some(library) = libraries.next().map_err(text)? {
        add(table.name(library.name.get(LE)))?;
    }
    Ok(())
}

fn text(error: object::Error) -> String {
    error.to_string()
}
