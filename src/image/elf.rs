//! Distinguishes ELF files, which are cubins or AMD code objects, by their machine.

use object::Endianness;
use object::read::elf::{ElfFile64, FileHeader};

use super::contents::Read;
use super::error::ImageError;
use super::{code_object, cubin};

const EM_CUDA: u16 = 190;
const EM_AMDGPU: u16 = 224;

pub(super) fn read(bytes: &[u8]) -> Result<Read, ImageError> {
    let file = ElfFile64::<Endianness>::parse(bytes)
        .map_err(|error| ImageError::Broken { kind: "ELF file", problem: error.to_string() })?;
    match file.elf_header().e_machine(file.endian()) {
        EM_CUDA => cubin::read(&file),
        EM_AMDGPU => code_object::read(&file, bytes),
        machine => Err(ImageError::Unknown { found: format!("an ELF file for machine {machine}, which isn't a GPU") }),
    }
}
